"""The page of a preflight: all findings, the worst first, and nothing that is fetched."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from corral.report.check import check_document
from corral.report.check_page import check_page


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A finding."""

    check: str
    about: str
    verdict: str
    text: str
    fix: str = ""


FINDINGS = [
    Found(check="identity", about="region", verdict="ok", text="us-east-1"),
    Found(check="quotas", about="Running On-Demand P instances", verdict="warn", text="0 vCPUs", fix="ask for 384"),
    Found(check="quotas", about="EC2-VPC Elastic IPs", verdict="ok", text="5 addresses"),
    Found(check="buckets", about="s3://corpus", verdict="fail", text="is <gone> & away", fix="make it"),
    Found(check="images", about="-", verdict="skipped", text="not looked at: machine images"),
]


@pytest.fixture(scope="module")
def page() -> str:
    return check_page("dev", "us-east-1", FINDINGS, datetime(2026, 11, 22, 12, 30, tzinfo=UTC))


def test_the_answer_stands_above(page: str) -> None:
    assert "<p>us-east-1, asked at 2026-11-22 12:30 UTC: no; 1 fail, 1 warn, 2 ok, 1 skipped.</p>" in page


def found(*verdicts: str, about: str = "region") -> list[Found]:
    return [Found(check="identity", about=about, verdict=verdict, text="") for verdict in verdicts]


@pytest.mark.parametrize(
    ("findings", "can"),
    [
        (found("ok", "warn", "skipped"), True),
        (found("ok", "fail"), False),
        (found("skipped"), None),
        (found("warn", "skipped", about="account"), None),  # the account lets nothing be looked at
    ],
)
def test_whether_it_can_start_is_known_where_something_was_seen(findings: list[Found], can: bool | None) -> None:
    assert check_document("dev", findings)["can_start"] == can


def test_a_page_without_anything_seen_does_not_say_yes() -> None:
    page = check_page("dev", "us-east-1", found("skipped"), datetime(2026, 11, 22, 12, 30, tzinfo=UTC))
    assert "12:30 UTC: not known, as nothing was seen; 1 skipped.</p>" in page


def test_the_worst_checks_come_first(page: str) -> None:
    assert re.findall(r'<section id="([a-z-]+)">', page) == ["buckets", "quotas", "identity", "images"]


def test_each_finding_is_a_row_with_what_would_be_right(page: str) -> None:
    assert re.findall(r'<td class="(\w+)">\w+</td><td>([^<]*)</td>', page) == [
        ("fail", "s3://corpus"),
        ("warn", "Running On-Demand P instances"),
        ("ok", "EC2-VPC Elastic IPs"),
        ("ok", "region"),
        ("skipped", "-"),
    ]


def test_the_fix_is_told_beside_what_was_found(page: str) -> None:
    assert '<td>0 vCPUs<br><span class="fix">What would be right: ask for 384</span></td>' in page


def test_text_is_text(page: str) -> None:
    assert "is &lt;gone&gt; &amp; away" in page


def test_nothing_is_fetched(page: str) -> None:
    assert re.findall(r"""src=|href="[^#]|url\(|@import""", page) == []
