"""Credentials, region and clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from finding_lines import NOW, bad, dev, finding_lines

from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.caller_identity import IdentityFacts, evaluate, fetch

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


class OtherRegions:
    """An account that AWS knows in us-east-1, and not in the environment's region, whose status is this."""

    def __init__(self, status: str) -> None:
        self.status = status

    def client(self, service: str, region: str = "eu-south-2") -> Any:
        return RegionClient(region, self.status)


class RegionClient:
    """STS and EC2 of one region."""

    def __init__(self, region: str, status: str) -> None:
        self.region, self.status = region, status

    def get_caller_identity(self) -> dict[str, Any]:
        if self.region != "us-east-1":
            error = {"Code": "InvalidClientTokenId", "Message": "The security token included in the request is invalid"}
            raise ClientError({"Error": error}, "GetCallerIdentity")
        return {"Account": "123456789012", "Arn": GOOD.arn, "ResponseMetadata": {"HTTPHeaders": {}}}

    def describe_regions(self, **request: bool) -> dict[str, Any]:
        assert request == {"AllRegions": True}
        return {"Regions": [{"RegionName": "eu-south-2", "OptInStatus": self.status}]}


@pytest.mark.parametrize(
    ("status", "line"),
    [
        ("not-opted-in", "fail region: eu-south-2 is not enabled in account 123456789012"),
        (
            "opted-in",
            f"fail credentials: {GOOD.arn} is known in us-east-1, but not in eu-south-2: tokens of STS's global"
            " endpoint are not",
        ),
    ],
)
def test_a_region_that_does_not_know_the_credentials_is_looked_up_in_another(status: str, line: str) -> None:
    plans = dev()
    request = replace(plans, cluster=replace(plans.cluster, region="eu-south-2"))
    assert bad(evaluate(request, fetch(AwsQueryCache(OtherRegions(status)), request))) == [line]


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
