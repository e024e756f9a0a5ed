"""Replacing properties, computed properties and defaults: the tables compared with terraform-provider-aws.

`official_schema.json` is what `pulumi-resource-aws schema` prints, which `make official-provider` builds; it names the
versions. Left out: tags and regions, which are alike for all types, names that Pulumi makes up, and what the stand-in
requires (test_provider_tables lists where it is stricter), since what is always given is never decided by AWS.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from corral.box.provider import lifecycle, sdk_version
from corral.box.provider.configuration import ProviderSettings
from corral.box.provider.property_schema import Prop
from corral.box.provider.resource import Resource
from corral.box.provider.tables import RESOURCES

SETTINGS = ProviderSettings(region="us-east-1")
COMMON = ("tags", "tagsAll", "region")
NAMED_BY_PULUMI = ("name", "bucket")
OFFICIAL = json.loads(Path(__file__).with_name("official_schema.json").read_text(encoding="utf-8"))
REPLACES, COMPUTED = {"replaces": True}, {"computed": True}
# Load balancers are in no service of the exported schema. Read off internal/service/elbv2 of terraform-provider-aws by
# hand: load_balancer.go at 00edc94, target_group.go at 013cfb4, listener.go at 01c0800, which is older, and
# target_group_attachment.go at 07e0d0b.
BY_HAND: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "aws:lb/loadBalancer:LoadBalancer": {
        "name": REPLACES | COMPUTED,
        "loadBalancerType": REPLACES | {"default": "application"},
        "internal": REPLACES | COMPUTED,
        "securityGroups": COMPUTED,
        "subnets": COMPUTED,
        "enableCrossZoneLoadBalancing": {"default": False},
        "enableDeletionProtection": {"default": False},
    },
    "aws:lb/targetGroup:TargetGroup": {
        "name": REPLACES | COMPUTED,
        "port": REPLACES,
        "protocol": REPLACES,
        "vpcId": REPLACES,
        "targetType": REPLACES | {"default": "instance"},
        "preserveClientIp": COMPUTED,
        "deregistrationDelay": {"default": 300},
        "stickiness": COMPUTED,
        "stickiness.type": {},
        "stickiness.enabled": {"default": True},
        "healthCheck": COMPUTED,
        "healthCheck.enabled": {"default": True},
        "healthCheck.protocol": {"default": "HTTP"},
        "healthCheck.port": {"default": "traffic-port"},
        "healthCheck.path": COMPUTED,
        "healthCheck.interval": {"default": 30},
        "healthCheck.timeout": COMPUTED,
        "healthCheck.healthyThreshold": {"default": 3},
        "healthCheck.unhealthyThreshold": {"default": 3},
    },
    "aws:lb/listener:Listener": {
        "loadBalancerArn": REPLACES,
        "port": {},
        "protocol": COMPUTED,
        "defaultActions": {},
        "defaultActions.type": {},
        "defaultActions.targetGroupArn": {},
    },
    "aws:lb/targetGroupAttachment:TargetGroupAttachment": {
        "targetGroupArn": REPLACES,
        "targetId": REPLACES,
        "port": REPLACES,
    },
}
# Types of the newer generation of HashiCorp's SDK export neither. Read off internal/service by hand: REPLACES alone,
# for their defaults are null.
PARTIAL_REPLACES = {
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": {"bucket"},  # s3/bucket_lifecycle_configuration
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": {"securityGroupId"},  # ec2/vpc_security_group_*_rule.go
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": {"securityGroupId"},
}
# The bridge passes on no default that is of a type of the SDK, such as a tenancy.
DEFAULTS_OF_NAMED_TYPES = {"aws:ec2/vpc:Vpc": {"instanceTenancy": "default"}}
# Where the stand-in differs, and why. A user notices only the first.
ON_PURPOSE = {
    "aws:route53/record:Record type replaces here": "its type is in its id, so that a record is found by its id",
    "aws:ec2/instance:Instance rootBlockDevice.tags is computed here": "the default tags come back among them",
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration rules.filter is computed here": (
        "S3 fills in an empty one, for which the provider has a plan modifier"
    ),
    # The SDK's provider is newer than the exported schema. Source: pull requests of hashicorp/terraform-provider-aws.
    "aws:fsx/lustreFileSystem:LustreFileSystem fileSystemTypeVersion replaces there": "#47719: an upgrade in place",
    "aws:ec2/vpcEndpoint:VpcEndpoint privateDnsEnabled replaces there": "#46800: in place for interfaces",
}


def paths(props: Mapping[str, Prop], above: str = "") -> Iterator[tuple[str, Prop]]:
    """Every property with its path."""
    for name, prop in props.items():
        yield f"{above}{name}", prop
        fields = prop.fields or (prop.item.fields if prop.item else {})
        yield from paths(fields, f"{above}{name}.")


def own(resource: Resource) -> dict[str, Prop]:
    """The arguments that are particular to the type, with their paths."""
    return {path: prop for path, prop in paths(resource.inputs) if path not in COMMON}


def official(token: str) -> Mapping[str, Mapping[str, Any]]:
    """What HashiCorp's schema says of the arguments that the stand-in knows."""
    known = own(RESOURCES[token])
    reported = BY_HAND.get(token) or OFFICIAL["resources"][token]["properties"]
    return {path: reported[path] for path in known if path in reported}


def differing(token: str, here: set[str], there: set[str], word: str) -> list[str]:
    """One line for each path that only one side has and that is not on purpose."""
    lines = [f"{token} {path} {word} here" for path in here - there]
    lines += [f"{token} {path} {word} there" for path in there - here]
    return sorted(line for line in lines if line not in ON_PURPOSE)


def test_the_schema_is_of_the_sdk_in_use() -> None:
    assert OFFICIAL["pulumi-aws"] == sdk_version()


def test_every_type_is_compared() -> None:
    assert sorted([*OFFICIAL["resources"], *BY_HAND]) == sorted(RESOURCES)


def test_partial_types_are_read_by_hand() -> None:
    partial = {token for token, one in OFFICIAL["resources"].items() if one.get("partial")}
    assert partial == PARTIAL_REPLACES.keys()


@pytest.mark.parametrize("token", sorted(RESOURCES))
def test_every_argument_is_one_of_the_provider(token: str) -> None:
    assert sorted(own(RESOURCES[token]).keys() - official(token).keys()) == []


@pytest.mark.parametrize("token", sorted(RESOURCES))
def test_properties_that_replace_match_the_provider(token: str) -> None:
    here = {path for path, prop in own(RESOURCES[token]).items() if prop.replaces}
    there = {path for path, reported in official(token).items() if reported.get("replaces")}
    assert differing(token, here, PARTIAL_REPLACES.get(token, there), "replaces") == []


def test_a_record_of_another_type_is_a_new_record() -> None:
    assert RESOURCES["aws:route53/record:Record"].inputs["type"].replaces


@pytest.mark.parametrize("token", sorted(RESOURCES))
def test_computed_properties_match_the_provider(token: str) -> None:
    known = own(RESOURCES[token])
    here = {path for path, prop in known.items() if prop.computed}
    computed = {path for path, reported in official(token).items() if reported.get("computed")}
    there = {path for path in computed if not known[path].required and path not in NAMED_BY_PULUMI}
    assert differing(token, here, there, "is computed") == []


@pytest.mark.parametrize("token", sorted(RESOURCES))
def test_the_defaults_are_the_providers(token: str) -> None:
    here = {path: prop.default for path, prop in own(RESOURCES[token]).items() if prop.default is not None}
    there = {
        path: reported["default"] for path, reported in official(token).items() if reported.get("default") is not None
    }
    assert here == there | DEFAULTS_OF_NAMED_TYPES.get(token, {})


# --- what replaces only sometimes: the CustomizeDiff functions of the same files

INSTANCE = "aws:ec2/instance:Instance"
LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
INTERFACE = "aws:ec2/networkInterface:NetworkInterface"
PARAMETER = "aws:ssm/parameter:Parameter"
RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
VPC = "aws:ec2/vpc:Vpc"
SCRATCH = {"deploymentType": "SCRATCH_1"}
LASTING = {"deploymentType": "PERSISTENT_2"}
ADDRESSES = {"privateIp": "10.0.0.4"}


def provisioned(iops: int) -> dict[str, Any]:
    return {"metadataConfiguration": {"mode": "USER_PROVISIONED", "iops": iops}}


def changes(token: str, old: dict[str, Any], new: dict[str, Any]) -> dict[str, bool]:
    """The paths that differ, and whether that replaces the resource."""
    region = {"region": SETTINGS.region}
    return {one.path: one.replaces for one in lifecycle.diff(RESOURCES[token], SETTINGS, {**region, **old}, new)}


@pytest.mark.parametrize(
    ("token", "common", "old", "new"),
    [
        (INSTANCE, {"userDataReplaceOnChange": True}, {"userData": "a"}, {"userData": "b"}),
        (INTERFACE, ADDRESSES, {"privateIps": ["10.0.0.4"]}, {"privateIps": ["10.0.0.5"]}),
        (VPC, {}, {"instanceTenancy": "default"}, {"instanceTenancy": "dedicated"}),
        (ENDPOINT, {"vpcEndpointType": "Gateway"}, {"privateDnsEnabled": False}, {"privateDnsEnabled": True}),
        (LUSTRE, SCRATCH, {"storageCapacity": 1200}, {"storageCapacity": 2400}),
        (LUSTRE, LASTING, {"storageCapacity": 2400}, {"storageCapacity": 1200}),
        (LUSTRE, LASTING, {"fileSystemTypeVersion": "2.15"}, {"fileSystemTypeVersion": "2.12"}),
        (PARAMETER, {}, {"tier": "Advanced"}, {"tier": "Standard"}),
    ],
)
def test_a_change_replaces_the_resource(
    token: str, common: dict[str, Any], old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert changes(token, {**common, **old}, {**common, **new}) == dict.fromkeys(new, True)


@pytest.mark.parametrize(
    ("token", "common", "old", "new"),
    [
        (INSTANCE, {"userDataReplaceOnChange": False}, {"userData": "a"}, {"userData": "b"}),
        (INSTANCE, {}, {"instanceType": "m7i.large"}, {"instanceType": "m7i.xlarge"}),
        (INTERFACE, ADDRESSES, {"privateIps": ["10.0.0.4"]}, {"privateIps": ["10.0.0.4", "10.0.0.5"]}),
        (VPC, {}, {"instanceTenancy": "dedicated"}, {"instanceTenancy": "default"}),
        (ENDPOINT, {"vpcEndpointType": "Interface"}, {"privateDnsEnabled": False}, {"privateDnsEnabled": True}),
        (RULE, {"ipProtocol": "-1"}, {"cidrIpv4": "10.0.0.0/16"}, {"cidrIpv4": "10.0.0.0/8"}),
        (LUSTRE, LASTING, {"storageCapacity": 1200}, {"storageCapacity": 2400}),
        (LUSTRE, LASTING, {"fileSystemTypeVersion": "2.12"}, {"fileSystemTypeVersion": "2.15"}),
        (PARAMETER, {}, {"tier": "Standard"}, {"tier": "Advanced"}),
        ("aws:cloudwatch/logGroup:LogGroup", {}, {"kmsKeyId": "arn:a"}, {"kmsKeyId": "arn:b"}),
        ("aws:ebs/volume:Volume", {}, {"size": 20}, {"size": 40}),
    ],
)
def test_a_change_is_an_update(token: str, common: dict[str, Any], old: dict[str, Any], new: dict[str, Any]) -> None:
    assert changes(token, {**common, **old}, {**common, **new}) == dict.fromkeys(new, False)


def test_a_source_of_another_kind_replaces_the_rule() -> None:
    old = {"ipProtocol": "-1", "cidrIpv4": "10.0.0.0/16"}
    new = {"ipProtocol": "-1", "referencedSecurityGroupId": "sg-1"}
    assert changes(RULE, old, new) == {"cidrIpv4": True, "referencedSecurityGroupId": True}


def test_fewer_metadata_iops_replace_the_file_system() -> None:
    old, new = ({**LASTING, **provisioned(iops)} for iops in (6000, 1500))
    assert changes(LUSTRE, old, new) == {"metadataConfiguration.iops": True}


def test_more_metadata_iops_are_an_update() -> None:
    old, new = ({**LASTING, **provisioned(iops)} for iops in (1500, 6000))
    assert changes(LUSTRE, old, new) == {"metadataConfiguration.iops": False}
