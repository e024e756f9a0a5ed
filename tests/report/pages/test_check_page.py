"""The page of a preflight: all findings, the worst first; it loads nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from corral.report.account.check_view import check_document
from corral.report.pages.check_page import check_page


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A finding."""

    check: str
    about: str
    verdict: str
    message: str
    fix: str = ""


FINDINGS = [
    Found(check="identity", about="region", verdict="ok", message="us-east-1"),
    Found(check="quotas", about="Running On-Demand P instances", verdict="warn", message="0 vCPUs", fix="ask for 384"),
    Found(check="quotas", about="EC2-VPC Elastic IPs", verdict="ok", message="5 addresses"),
    Found(check="buckets", about="s3://corpus", verdict="fail", message="is <gone> & away", fix="make it"),
    Found(check="images", about="-", verdict="skipped", message="not looked at: machine images"),
]


@pytest.fixture(scope="module")
def page() -> str:
    return check_page("dev", "us-east-1", FINDINGS, datetime(2026, 11, 22, 12, 30, tzinfo=UTC))


def test_page_starts_with_the_answer(page: str) -> None:
    assert "<p>us-east-1, checked at 2026-11-22 12:30 UTC: no; 1 fail, 1 warn, 2 ok, 1 skipped.</p>" in page


def found(*verdicts: str, about: str = "region") -> list[Found]:
    return [Found(check="identity", about=about, verdict=verdict, message="") for verdict in verdicts]


@pytest.mark.parametrize(
    ("findings", "can"),
    [
        (found("ok", "warn", "skipped"), True),
        (found("ok", "fail"), False),
        (found("skipped"), None),
        (found("warn", "skipped", about="account"), None),  # the account denies every check
    ],
)
def test_answer_is_yes_or_no_if_a_check_could_look(findings: list[Found], can: bool | None) -> None:
    assert check_document("dev", findings)["can_start"] == can


def test_answer_is_unknown_if_no_check_could_look() -> None:
    page = check_page("dev", "us-east-1", found("skipped"), datetime(2026, 11, 22, 12, 30, tzinfo=UTC))
    assert "12:30 UTC: unknown, no check could look; 1 skipped.</p>" in page


def test_worst_checks_come_first(page: str) -> None:
    assert re.findall(r'<section id="([a-z-]+)">', page) == ["buckets", "quotas", "identity", "images"]


def test_each_finding_is_a_row_with_its_fix(page: str) -> None:
    assert re.findall(r'<td class="(\w+)">\w+</td><td>([^<]*)</td>', page) == [
        ("fail", "s3://corpus"),
        ("warn", "Running On-Demand P instances"),
        ("ok", "EC2-VPC Elastic IPs"),
        ("ok", "region"),
        ("skipped", "-"),
    ]


def test_fix_follows_the_finding(page: str) -> None:
    assert '<td>0 vCPUs<br><span class="fix">Fix: ask for 384</span></td>' in page


def test_text_is_escaped(page: str) -> None:
    assert "is &lt;gone&gt; &amp; away" in page


def test_page_loads_nothing(page: str) -> None:
    assert re.findall(r"""src=|href="[^#]|url\(|@import""", page) == []
