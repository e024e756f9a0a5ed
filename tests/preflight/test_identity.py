"""Credentials, region and clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from judging import NOW, bad, dev, said

from corral.preflight.identity import Facts, judge

GOOD = Facts(
    account="123456789012",
    arn="arn:aws:sts::123456789012:assumed-role/deployer/ann",
    clock=NOW,
    regions=frozenset({"us-east-1", "us-west-2"}),
)


def test_who_asks_is_told() -> None:
    assert said(judge(dev(), GOOD))[0] == "ok credentials: arn:aws:sts::123456789012:assumed-role/deployer/ann"


def test_nothing_else_is_told_of_good_credentials() -> None:
    assert bad(judge(dev(), GOOD)) == []


def test_the_root_user_is_warned_of() -> None:
    found = bad(judge(dev(), replace(GOOD, arn="arn:aws:iam::123456789012:root")))
    assert found == ["warn credentials: they are those of the root user of 123456789012"]


def test_a_region_that_is_not_turned_on_is_told() -> None:
    found = bad(judge(dev(), replace(GOOD, regions=frozenset({"us-west-2"}))))
    assert found == ["fail region: us-east-1 is not turned on in account 123456789012"]


@pytest.mark.parametrize(
    ("ahead_s", "told"),
    [
        (59, []),
        (60, ["warn clock: this machine's clock is 60 s ahead of AWS's; AWS refuses from 300 s on"]),
        (-299, ["warn clock: this machine's clock is 299 s behind AWS's; AWS refuses from 300 s on"]),
        (300, ["fail clock: this machine's clock is 300 s ahead of AWS's, and AWS refuses what is 300 s off"]),
    ],
)
def test_a_clock_that_is_wrong_is_told(ahead_s: int, told: list[str]) -> None:
    assert bad(judge(dev(), replace(GOOD, clock=NOW - timedelta(seconds=ahead_s)))) == told


def test_an_answer_without_a_time_says_nothing_of_the_clock() -> None:
    assert [line for line in said(judge(dev(), replace(GOOD, clock=None))) if "clock" in line] == []
