"""Validation of a program's inputs: errors with paths, automatic names and default tags."""

from __future__ import annotations

from typing import Any

import pytest

from corral.box.provider.property_validation import Autonaming, check_inputs
from corral.box.provider.tables import RESOURCES

NAMING = Autonaming(name="Train", seed=bytes.fromhex("0123456789abcdef"))
PARAMETER = "aws:ssm/parameter:Parameter"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"


def check(
    token: str, news: dict[str, Any], olds: dict[str, Any] | None = None, tags: dict[str, str] | None = None
) -> tuple[dict[str, Any], list[str]]:
    """The inputs, and the faults as lines."""
    inputs, faults = check_inputs(RESOURCES[token], news, olds or {}, NAMING, tags or {})
    return inputs, [fault.reason for fault in faults]


def test_an_unknown_argument_is_refused_by_its_path() -> None:
    _, faults = check(TEMPLATE, {"networkInterfaces": [{"deviceIndex": 0, "color": "red"}]})
    assert faults == [
        "the box's stand-in for the aws provider does not support the argument networkInterfaces[0].color"
    ]


def test_a_missing_argument_is_named() -> None:
    assert check("aws:ec2/subnet:Subnet", {"vpcId": "vpc-1"})[1] == ["cidrBlock is required"]


def test_a_value_of_another_kind_is_refused() -> None:
    _, faults = check("aws:ec2/vpc:Vpc", {"cidrBlock": "10.0.0.0/16", "enableDnsSupport": "perhaps"})
    assert faults == ['enableDnsSupport: "perhaps" is not a boolean']


def test_a_document_that_is_not_json_is_refused() -> None:
    _, faults = check("aws:iam/policy:Policy", {"policy": "{allow}"})
    assert faults == ['policy: "{allow}" is not a JSON document']


def test_a_number_for_text_and_text_for_a_number_are_converted() -> None:
    limits = {"budgetType": "COST", "timeUnit": "MONTHLY", "limitAmount": 20000, "limitUnit": "USD"}
    assert check("aws:budgets/budget:Budget", limits)[0]["limitAmount"] == "20000"


def test_a_name_is_the_logical_name_and_seven_digits() -> None:
    assert check(PARAMETER, {"type": "String"})[0]["name"] == "Train-0123456"


def test_an_automatic_bucket_name_is_in_lower_case() -> None:
    assert check("aws:s3/bucket:Bucket", {})[0]["bucket"] == "train-0123456"


def test_an_automatic_alias_starts_with_alias() -> None:
    assert check("aws:kms/alias:Alias", {"targetKeyId": "k"})[0]["name"] == "alias/Train-0123456"


def test_an_automatic_name_does_not_change() -> None:
    assert check(PARAMETER, {"type": "String"}, olds={"name": "Train-fffffff"})[0]["name"] == "Train-fffffff"


def test_a_given_name_is_kept() -> None:
    assert check(PARAMETER, {"type": "String", "name": "/a"}, olds={"name": "Train-fffffff"})[0]["name"] == "/a"


def test_default_tags_are_merged_and_the_resource_wins() -> None:
    news = {"cidrBlock": "10.0.0.0/16", "tags": {"owner": "b", "Name": "main"}}
    inputs, _ = check("aws:ec2/vpc:Vpc", news, tags={"owner": "a", "env": "dev"})
    assert (inputs["tags"], inputs["tagsAll"]) == (
        {"owner": "b", "Name": "main"},
        {"owner": "b", "env": "dev", "Name": "main"},
    )


@pytest.mark.parametrize("token", ["aws:ec2/route:Route", "aws:s3/bucketVersioning:BucketVersioning"])
def test_a_type_without_tags_gets_none(token: str) -> None:
    assert "tagsAll" not in check(token, {}, tags={"env": "dev"})[0]
