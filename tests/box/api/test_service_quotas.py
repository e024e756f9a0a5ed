"""Service Quotas: the account's quotas, and their changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from vpc_fixtures import Clients

import boxes
from corral.box import client, control
from corral.box.client import BoxStatus


def test_a_quota_is_listed_with_its_applied_value(aws: Clients) -> None:
    quota = aws("service-quotas").get_service_quota(ServiceCode="ec2", QuotaCode="L-417A185B")["Quota"]
    assert quota == {
        "ServiceCode": "ec2",
        "ServiceName": "Amazon Elastic Compute Cloud (Amazon EC2)",
        "QuotaArn": "arn:aws:servicequotas:us-east-1:123456789012:ec2/L-417A185B",
        "QuotaCode": "L-417A185B",
        "QuotaName": "Running On-Demand P instances",
        "Value": 4608.0,
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
        "QuotaAppliedAtLevel": "ACCOUNT",
    }


def test_the_default_of_a_quota_is_what_a_new_account_of_aws_has(aws: Clients) -> None:
    quota = aws("service-quotas").get_aws_default_service_quota(ServiceCode="ec2", QuotaCode="L-417A185B")["Quota"]
    assert (quota["Value"], quota["QuotaArn"]) == (0.0, "arn:aws:servicequotas:us-east-1::ec2/L-417A185B")


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("L-417A185B", 4608),
        ("L-7212CCBC", 4608),
        ("L-C4BD4855", 4608),
        ("L-DA6814F2", 4608),
        ("L-DB2E81BA", 768),
        ("L-3819A6DF", 768),
        ("L-2C3B7624", 768),
        ("L-6B0D517C", 768),
        ("L-1216C47A", 1152),
        ("L-34B43A08", 1152),
        ("L-6E869C2A", 0),
        ("L-0263D0A3", 5),
    ],
)
def test_the_account_of_a_new_box_has_enough_for_the_shipped_environments(
    aws: Clients, code: str, value: float
) -> None:
    assert aws("service-quotas").get_service_quota(ServiceCode="ec2", QuotaCode=code)["Quota"]["Value"] == value


def test_quotas_are_listed_in_pages(aws: Clients) -> None:
    pages = (
        aws("service-quotas")
        .get_paginator("list_service_quotas")
        .paginate(ServiceCode="vpc", PaginationConfig={"PageSize": 10})
    )
    codes = [[quota["QuotaCode"] for quota in page["Quotas"]] for page in pages]
    assert ([len(page) for page in codes], codes[1]) == ([10, 3], ["L-E79EC296", "L-F678F1CE", "L-FE5A380F"])


@pytest.mark.parametrize(("service", "count"), [("ec2", 26), ("ebs", 3), ("elasticfilesystem", 2), ("fsx", 8)])
def test_the_defaults_of_a_service_are_listed(aws: Clients, service: str, count: int) -> None:
    assert len(aws("service-quotas").list_aws_default_service_quotas(ServiceCode=service)["Quotas"]) == count


@pytest.mark.parametrize("operation", ["get_service_quota", "get_aws_default_service_quota"])
@pytest.mark.parametrize("named", [("ec2", "L-00000000"), ("vpc", "L-417A185B"), ("nothing", "L-417A185B")])
def test_an_unknown_quota_is_refused(aws: Clients, operation: str, named: tuple[str, str]) -> None:
    with pytest.raises(ClientError) as refused:
        getattr(aws("service-quotas"), operation)(ServiceCode=named[0], QuotaCode=named[1])
    assert refused.value.response["Error"]["Code"] == "NoSuchResourceException"


def test_a_changed_quota_applies_in_its_region(aws: Clients, box: BoxStatus) -> None:
    control.set_quota(box.dir, "L-417A185B", 96, "us-west-2")
    named = {"ServiceCode": "ec2", "QuotaCode": "L-417A185B"}
    values = [aws("service-quotas", region).get_service_quota(**named)["Quota"]["Value"]
              for region in ("us-east-1", "us-west-2")]  # fmt: skip
    assert values == [4608, 96]


def test_a_changed_quota_survives_a_restart(state_directory: Path) -> None:
    boxes.start(state_directory)
    control.set_quota(state_directory, "L-417A185B", 96)
    client.stop(state_directory)
    with boxes.running_box(state_directory) as status:
        quota = boxes.client(status, "service-quotas").get_service_quota(ServiceCode="ec2", QuotaCode="L-417A185B")
    assert quota["Quota"]["Value"] == 96


def test_calls_can_read_quotas_but_not_change_them(aws: Clients) -> None:
    with pytest.raises(ClientError) as refused:
        aws("service-quotas").request_service_quota_increase(
            ServiceCode="ec2", QuotaCode="L-417A185B", DesiredValue=9000.0
        )
    assert refused.value.response["Error"]["Code"] == "InvalidAction"
