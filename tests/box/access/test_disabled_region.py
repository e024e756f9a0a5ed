"""A region that the account has not opted in to."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from box.vpc_fixtures import Clients
from corral.box import control
from corral.box.client import BoxStatus
from corral.box.daemon.daemon_process import BoxError

REGION = "ap-east-1"


@pytest.fixture
def disabled(box: BoxStatus, aws: Clients) -> Clients:
    """Makes clients in an account without the region."""
    control.inject_fault(box.dir, "disabled-region", region=REGION)
    return aws


@pytest.mark.parametrize(
    ("service", "call", "code"),
    [
        ("ec2", "describe_vpcs", "AuthFailure"),
        ("sts", "get_caller_identity", "InvalidClientTokenId"),
        ("fsx", "describe_file_systems", "UnrecognizedClientException"),
        ("efs", "describe_file_systems", "UnrecognizedClientException"),
        ("s3", "list_buckets", "InvalidAccessKeyId"),
    ],
)
def test_a_disabled_region_does_not_know_the_credentials(disabled: Clients, service: str, call: str, code: str) -> None:
    with pytest.raises(ClientError) as raised:
        getattr(disabled(service, REGION), call)()
    assert raised.value.response["Error"]["Code"] == code


def test_other_regions_know_them(disabled: Clients) -> None:
    assert disabled("sts").get_caller_identity()["Account"] == "123456789012"


def statuses(ec2: Any, **request: Any) -> dict[str, str]:
    return {one["RegionName"]: one["OptInStatus"] for one in ec2.describe_regions(**request)["Regions"]}


def test_a_disabled_region_is_listed_on_request_only(disabled: Clients) -> None:
    ec2 = disabled("ec2")
    assert (
        REGION in statuses(ec2),
        statuses(ec2, AllRegions=True)[REGION],
        statuses(ec2, RegionNames=[REGION]),
    ) == (False, "not-opted-in", {REGION: "not-opted-in"})


def test_the_account_has_opted_in_to_other_regions(aws: Clients) -> None:
    found = statuses(aws("ec2"))
    assert (found[REGION], found["af-south-1"], found["us-east-1"], "cn-north-1" in found) == (
        "opted-in",
        "opted-in",
        "opt-in-not-required",
        False,
    )


@pytest.mark.parametrize(
    ("region", "problem"),
    [
        ("us-east-1", "every account can use us-east-1 - choose a region that needs an opt-in, e.g. ap-east-1"),
        ("ap-east-11", "'ap-east-11' is not an AWS region - did you mean 'ap-east-1'?"),
    ],
)
def test_only_a_region_that_needs_an_opt_in_can_be_disabled(box: BoxStatus, region: str, problem: str) -> None:
    with pytest.raises(BoxError) as raised:
        control.inject_fault(box.dir, "disabled-region", region=region)
    assert str(raised.value) == problem
