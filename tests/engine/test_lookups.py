"""Where things are looked for that an interrupted engine may have made."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws
from states import resource

from corral.box.provider.tables import RESOURCES
from corral.engine.lookups import BY_EC2_TAGS, BY_NAME, SEARCHES, candidates
from corral.plan.deployer import allows, deployer_policies, permission

TAGS = {"Name": "a", "corral:base": "dev"}


class Fake:
    """A client of any service whose every call gives the same answer."""

    def __init__(self, **answer: Any) -> None:
        self.answer = answer

    def __call__(self, service: str) -> Fake:
        return self

    def can_paginate(self, operation: str) -> bool:
        return False

    def __getattr__(self, operation: str) -> Any:
        return lambda **asked: self.answer


class Recorder:
    """A client of any service that finds nothing and notes what it is asked, by the action that allows it."""

    def __init__(self, asked: set[str], service: str = "") -> None:
        self.asked, self.service = asked, service

    def __call__(self, service: str) -> Recorder:
        return Recorder(self.asked, service)

    def can_paginate(self, operation: str) -> bool:
        return True

    def get_paginator(self, operation: str) -> SimpleNamespace:
        answer = getattr(self, operation)
        return SimpleNamespace(paginate=lambda **asked: [answer(**asked)])

    def __getattr__(self, operation: str) -> Any:
        self.asked.add(permission(self.service, operation.title().replace("_", "")))
        return lambda **asked: defaultdict(list)


def found(token: str, inputs: dict[str, Any], **answer: Any) -> list[str]:
    return candidates(resource(token, "it", inputs=inputs), Fake(**answer), "us-east-1")


def test_every_type_that_the_box_can_make_can_be_found_again() -> None:
    assert set(RESOURCES) - {*BY_NAME, *BY_EC2_TAGS, *SEARCHES} == set()


def test_whoever_may_deploy_may_look_for_all_that_was_lost() -> None:
    words = "bucket key role name path subnetId routeTableId cidrBlock securityGroupId ipProtocol fileSystemId"
    words += " fileSystemPath topic protocol endpoint"
    inputs = {**dict.fromkeys(words.split(), "x"), "tagsAll": TAGS}
    asked: set[str] = set()
    for token in {*BY_NAME, *BY_EC2_TAGS, *SEARCHES}:
        candidates(resource(token, "it", inputs=inputs), Recorder(asked), "us-east-1")
    policies = deployer_policies(account="123456789012", region="us-east-1")
    assert len(asked) > 20
    assert sorted(action for action in asked if not allows(policies, action)) == []


@pytest.mark.parametrize(
    ("token", "inputs", "id"),
    [
        ("aws:s3/bucket:Bucket", {"bucket": "b"}, "b"),
        ("aws:iam/rolePolicy:RolePolicy", {"role": "r", "name": "n"}, "r:n"),
        ("aws:iam/policy:Policy", {"name": "n"}, "arn:aws:iam::1:policy/n"),
        ("aws:sns/topic:Topic", {"name": "n"}, "arn:aws:sns:us-east-1:1:n"),
        ("aws:ec2/route:Route", {"routeTableId": "rtb-1", "destinationCidrBlock": "0.0.0.0/0"}, "rtb-1_0.0.0.0/0"),
    ],
)
def test_what_has_a_name_is_known_by_it(token: str, inputs: dict[str, Any], id: str) -> None:
    assert found(token, inputs, Account="1") == [id]


def test_without_its_name_nothing_is_guessed() -> None:
    assert found("aws:s3/bucket:Bucket", {}) == []


def test_what_is_numbered_is_found_by_all_its_tags() -> None:
    there = [
        {"VpcId": "vpc-1", "Tags": [{"Key": "Name", "Value": "a"}]},
        {"VpcId": "vpc-2", "Tags": [{"Key": "Name", "Value": "a"}, {"Key": "corral:base", "Value": "dev"}]},
    ]
    assert found("aws:ec2/vpc:Vpc", {"tagsAll": TAGS}, Vpcs=there) == ["vpc-2"]


def test_what_ec2_shows_as_deleted_is_not_there() -> None:
    gone = {"NatGatewayId": "nat-1", "State": "deleted", "Tags": [{"Key": "Name", "Value": "a"}]}
    assert found("aws:ec2/natGateway:NatGateway", {"tagsAll": {"Name": "a"}}, NatGateways=[gone]) == []


def test_a_rule_is_found_by_the_traffic_that_it_lets_through() -> None:
    rules = [
        {"SecurityGroupRuleId": "sgr-1", "IsEgress": False, "IpProtocol": "tcp", "FromPort": 22, "ToPort": 22},
        {"SecurityGroupRuleId": "sgr-2", "IsEgress": False, "IpProtocol": "-1", "FromPort": -1, "ToPort": -1},
    ]
    inputs = {"securityGroupId": "sg-1", "ipProtocol": "-1"}
    assert found("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", inputs, SecurityGroupRules=rules) == [
        "sgr-2"
    ]


def test_a_secret_is_found_by_its_name_unless_it_is_to_be_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        manager = boto3.client("secretsmanager", region_name="us-east-1")
        made = {name: manager.create_secret(Name=name)["ARN"] for name in ("one", "doomed")}
        manager.delete_secret(SecretId="doomed")
        ids = [
            candidates(
                resource("aws:secretsmanager/secret:Secret", "it", inputs={"name": name}),
                lambda _: manager,
                "us-east-1",
            )
            for name in ("one", "doomed", "never")
        ]
    assert ids == [[made["one"]], [], []]
