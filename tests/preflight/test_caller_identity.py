"""Credentials, region and clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from finding_lines import NOW, bad, dev, finding_lines

from corral.preflight.caller_identity import IdentityFacts, evaluate

GOOD = IdentityFacts(
    account="123456789012",
    arn="arn:aws:sts::123456789012:assumed-role/deployer/ann",
    clock=NOW,
    regions=frozenset({"us-east-1", "us-west-2"}),
)


def test_the_caller_is_a_finding() -> None:
    assert (
        finding_lines(evaluate(dev(), GOOD))[0] == "ok credentials: arn:aws:sts::123456789012:assumed-role/deployer/ann"
    )


def test_good_credentials_have_no_other_finding() -> None:
    assert bad(evaluate(dev(), GOOD)) == []


def test_the_root_user_is_warned_of() -> None:
    found = bad(evaluate(dev(), replace(GOOD, arn="arn:aws:iam::123456789012:root")))
    assert found == ["warn credentials: belong to the root user of 123456789012"]


def test_a_disabled_region_is_a_finding() -> None:
    found = bad(evaluate(dev(), replace(GOOD, regions=frozenset({"us-west-2"}))))
    assert found == ["fail region: us-east-1 is not enabled in account 123456789012"]


@pytest.mark.parametrize(
    ("ahead_s", "expected"),
    [
        (59, []),
        (60, ["warn clock: this machine's clock is 60 s ahead of AWS's; AWS rejects requests from 300 s on"]),
        (-299, ["warn clock: this machine's clock is 299 s behind AWS's; AWS rejects requests from 300 s on"]),
        (300, ["fail clock: this machine's clock is 300 s ahead of AWS's; AWS rejects requests from 300 s on"]),
    ],
)
def test_a_wrong_clock_is_a_finding(ahead_s: int, expected: list[str]) -> None:
    assert bad(evaluate(dev(), replace(GOOD, clock=NOW - timedelta(seconds=ahead_s)))) == expected


def test_a_response_without_a_time_has_no_finding_about_the_clock() -> None:
    assert [line for line in finding_lines(evaluate(dev(), replace(GOOD, clock=None))) if "clock" in line] == []
