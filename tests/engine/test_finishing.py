"""What a killed provider left half made is finished, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from corral.engine.finishing import finish

GROUP = {"type": "aws:ec2/securityGroup:SecurityGroup"}


@pytest.fixture
def client() -> Iterator[Any]:
    with mock_aws():
        session = boto3.session.Session(aws_access_key_id="a", aws_secret_access_key="b", region_name="us-east-1")
        yield session.client


def outward(client: Any, group: str) -> list[str]:
    rules = client("ec2").describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}])
    return [rule["CidrIpv4"] for rule in rules["SecurityGroupRules"] if rule["IsEgress"]]


def new_group(client: Any) -> str:
    vpc = client("ec2").create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    return str(client("ec2").create_security_group(GroupName="a", Description="a", VpcId=vpc)["GroupId"])


def test_a_group_that_was_only_just_made_loses_the_rule_that_ec2_gave_it(client: Any) -> None:
    group = new_group(client)
    before = outward(client, group)
    finish(GROUP, [group], client)
    assert (before, outward(client, group)) == (["0.0.0.0/0"], [])


def test_a_group_whose_rule_was_taken_away_is_left_as_it_is(client: Any) -> None:
    group = new_group(client)
    for _ in range(2):
        finish(GROUP, [group], client)
    assert outward(client, group) == []


def test_other_things_are_not_touched(client: Any) -> None:
    group = new_group(client)
    finish({"type": "aws:ec2/vpc:Vpc"}, [group], client)
    assert outward(client, group) == ["0.0.0.0/0"]
