"""Resources that an interrupted engine may have created: their lookup, and the completion of half-made ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws
from states import resource

from corral.box.provider.tables import RESOURCES
from corral.engine.recovery.resource_lookup import BY_EC2_TAGS, BY_NAME, SEARCHES, candidates, finish_creation
from corral.plan.iam.deployer_policy import deployer_policies, permission
from deployer_actions import denied

TAGS = {"Name": "a", "corral:base": "dev"}
GROUP = {"type": "aws:ec2/securityGroup:SecurityGroup"}


class Fake:
    """A client of any service that gives every call the same answer."""

    def __init__(self, **answer: Any) -> None:
        self.answer = answer

    def __call__(self, service: str) -> Fake:
        return self

    def can_paginate(self, operation: str) -> bool:
        return False

    def __getattr__(self, operation: str) -> Any:
        return lambda **arguments: self.answer


class Recorder:
    """A client of any service that finds nothing and records the IAM action of each call."""

    def __init__(self, actions: set[str], service: str = "") -> None:
        self.actions, self.service = actions, service

    def __call__(self, service: str) -> Recorder:
        return Recorder(self.actions, service)

    def can_paginate(self, operation: str) -> bool:
        return True

    def get_paginator(self, operation: str) -> SimpleNamespace:
        answer = getattr(self, operation)
        return SimpleNamespace(paginate=lambda **arguments: [answer(**arguments)])

    def __getattr__(self, operation: str) -> Any:
        self.actions.add(permission(self.service, operation.title().replace("_", "")))
        return lambda **arguments: defaultdict(list)


def found(token: str, inputs: dict[str, Any], **answer: Any) -> list[str]:
    return candidates(resource(token, "it", inputs=inputs), Fake(**answer), "us-east-1")


@pytest.fixture
def client() -> Iterator[Any]:
    with mock_aws():
        session = boto3.session.Session(aws_access_key_id="a", aws_secret_access_key="b", region_name="us-east-1")
        yield session.client


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        (
            "aws:ec2/routeTableAssociation:RouteTableAssociation",
            {"routeTableId": "rtb-0a1b2c3d", "subnetId": "subnet-1"},
        ),
        ("aws:efs/mountTarget:MountTarget", {"fileSystemId": "fs-0a1b2c3d", "subnetId": "subnet-1"}),
        (
            "aws:sns/topicSubscription:TopicSubscription",
            {"topic": "arn:aws:sns:us-east-1:123456789012:gone", "protocol": "email", "endpoint": "a@example.com"},
        ),
        ("aws:lb/loadBalancer:LoadBalancer", {"name": "gone"}),
        ("aws:lb/targetGroup:TargetGroup", {"name": "gone"}),
        (
            "aws:lb/listener:Listener",
            {"loadBalancerArn": "arn:aws:elasticloadbalancing:us-east-1:1:loadbalancer/net/gone/1", "port": "22"},
        ),
    ],
)
def test_a_part_of_something_that_does_not_exist_does_not_exist(
    client: Any, token: str, inputs: dict[str, str]
) -> None:
    assert candidates(resource(token, "it", inputs=inputs), client, "us-east-1") == []


def outward(client: Any, group: str) -> list[str]:
    rules = client("ec2").describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}])
    return [rule["CidrIpv4"] for rule in rules["SecurityGroupRules"] if rule["IsEgress"]]


def new_group(client: Any) -> str:
    vpc = client("ec2").create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    return str(client("ec2").create_security_group(GroupName="a", Description="a", VpcId=vpc)["GroupId"])


def test_every_type_that_the_box_creates_can_be_looked_up() -> None:
    assert set(RESOURCES) - {*BY_NAME, *BY_EC2_TAGS, *SEARCHES} == set()


def test_deploy_policies_allow_every_lookup() -> None:
    words = "bucket key role name path subnetId routeTableId cidrBlock securityGroupId ipProtocol fileSystemId"
    words += " fileSystemPath topic protocol endpoint loadBalancerArn port"
    inputs = {**dict.fromkeys(words.split(), "x"), "tagsAll": TAGS}
    actions: set[str] = set()
    for token in {*BY_NAME, *BY_EC2_TAGS, *SEARCHES}:
        candidates(resource(token, "it", inputs=inputs), Recorder(actions), "us-east-1")
    policies = deployer_policies(account="123456789012", region="us-east-1")
    assert len(actions) > 20
    assert denied(policies, actions) == []


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
def test_named_resource_is_found_by_its_name(token: str, inputs: dict[str, Any], id: str) -> None:
    assert found(token, inputs, Account="1") == [id]


def test_resource_without_its_name_is_not_guessed() -> None:
    assert found("aws:s3/bucket:Bucket", {}) == []


def test_resource_with_an_id_is_found_by_all_its_tags() -> None:
    there = [
        {"VpcId": "vpc-1", "Tags": [{"Key": "Name", "Value": "a"}]},
        {"VpcId": "vpc-2", "Tags": [{"Key": "Name", "Value": "a"}, {"Key": "corral:base", "Value": "dev"}]},
        {"VpcId": "vpc-3", "Tags": [{"Key": "Name", "Value": "a"}, {"Key": "corral:base", "Value": "another"}]},
    ]
    assert found("aws:ec2/vpc:Vpc", {"tagsAll": TAGS}, Vpcs=there) == ["vpc-2"]


def test_resource_that_ec2_shows_as_deleted_is_not_found() -> None:
    gone = {"NatGatewayId": "nat-1", "State": "deleted", "Tags": [{"Key": "Name", "Value": "a"}]}
    assert found("aws:ec2/natGateway:NatGateway", {"tagsAll": {"Name": "a"}}, NatGateways=[gone]) == []


def test_security_group_rule_is_found_by_its_traffic() -> None:
    rules = [
        {"SecurityGroupRuleId": "sgr-1", "IsEgress": False, "IpProtocol": "tcp", "FromPort": 22, "ToPort": 22},
        {"SecurityGroupRuleId": "sgr-2", "IsEgress": False, "IpProtocol": "-1", "FromPort": -1, "ToPort": -1},
    ]
    inputs = {"securityGroupId": "sg-1", "ipProtocol": "-1"}
    assert found("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", inputs, SecurityGroupRules=rules) == [
        "sgr-2"
    ]


def test_a_listener_is_found_by_its_port_on_its_load_balancer() -> None:
    listeners = [{"ListenerArn": "ssh", "Port": 22}, {"ListenerArn": "web", "Port": 443}]
    inputs = {"loadBalancerArn": "arn", "port": 22}
    assert found("aws:lb/listener:Listener", inputs, Listeners=listeners) == ["ssh"]


def test_secret_is_found_by_its_name_unless_scheduled_for_deletion(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_new_security_group_loses_its_default_rule(client: Any) -> None:
    group = new_group(client)
    before = outward(client, group)
    finish_creation(GROUP, [group], client)
    assert (before, outward(client, group)) == (["0.0.0.0/0"], [])


def test_security_group_without_the_default_rule_is_not_changed(client: Any) -> None:
    group = new_group(client)
    for _ in range(2):
        finish_creation(GROUP, [group], client)
    assert outward(client, group) == []


def test_other_resources_are_not_changed(client: Any) -> None:
    group = new_group(client)
    finish_creation({"type": "aws:ec2/vpc:Vpc"}, [group], client)
    assert outward(client, group) == ["0.0.0.0/0"]


@pytest.mark.parametrize(("key", "ids"), [("arn:key", ["vol-1"]), ("arn:other", [])])
def test_a_volume_with_the_same_tags_under_another_key_is_not_the_lost_one(key: str, ids: list[str]) -> None:
    inputs = {"tagsAll": TAGS, "kmsKeyId": "arn:key"}
    tags = [{"Key": name, "Value": value} for name, value in TAGS.items()]
    volume = {"VolumeId": "vol-1", "State": "available", "KmsKeyId": key, "Tags": tags}
    assert found("aws:ebs/volume:Volume", inputs, Volumes=[volume]) == ids
