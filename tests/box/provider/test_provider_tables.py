"""The tables compared with the SDK's generated classes: names, kinds and required properties."""

from __future__ import annotations

import importlib
import inspect
import sys
import typing
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import pulumi
import pytest
from pulumi._types import input_type_py_to_pulumi_names

from corral.box.provider.property_schema import Prop, PropertyKind
from corral.box.provider.resource import Resource
from corral.box.provider.tables import RESOURCES

# What a program writes for a kind, as the SDK's annotations have it.
SPELLINGS: Mapping[PropertyKind, object] = {
    PropertyKind.TEXT: str,
    PropertyKind.SWITCH: str,
    PropertyKind.DOCUMENT: str,
    PropertyKind.INTEGER: int,
    PropertyKind.NUMBER: float,
    PropertyKind.BOOLEAN: bool,
    PropertyKind.ASSET: pulumi.Asset,
    PropertyKind.LIST: Sequence,
    PropertyKind.SET: Sequence,
    PropertyKind.MAP: Mapping,
    PropertyKind.BLOCK: "class",
}
# Stricter than the SDK: what these would do without the argument, no stack wants.
STRICTER = {
    "aws:budgets/budget:Budget.limitAmount",
    "aws:budgets/budget:Budget.limitUnit",
    "aws:cloudwatch/metricAlarm:MetricAlarm.comparisonOperator",
    "aws:cloudwatch/metricAlarm:MetricAlarm.evaluationPeriods",
    "aws:cloudwatch/metricAlarm:MetricAlarm.metricName",
    "aws:cloudwatch/metricAlarm:MetricAlarm.namespace",
    "aws:cloudwatch/metricAlarm:MetricAlarm.period",
    "aws:cloudwatch/metricAlarm:MetricAlarm.threshold",
    "aws:ec2/instance:Instance.ami",
    "aws:ec2/instance:Instance.instanceType",
    "aws:ec2/natGateway:NatGateway.subnetId",
    "aws:ec2/subnet:Subnet.cidrBlock",
    "aws:ec2/vpc:Vpc.cidrBlock",
    "aws:ec2/vpcEndpoint:VpcEndpoint.serviceName",
    "aws:fsx/lustreFileSystem:LustreFileSystem.storageCapacity",
    "aws:route53/record:Record.records",
    "aws:route53/record:Record.ttl",
    "aws:route53/zone:Zone.name",
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration.rules",
    "aws:s3/bucketObjectv2:BucketObjectv2.key",
}


@cache
def _sdk(service: str) -> Any:
    """A module of the SDK; some warn on import about old names of their own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        module = importlib.import_module(f"pulumi_aws.{service}")
        getattr(module, "_inputs", None)  # it loads when it is first asked for something
    return module


def _arguments(resource: Resource) -> type:
    service, _, rest = resource.token.removeprefix("aws:").partition("/")
    name = rest.partition(":")[2]
    module = sys.modules[getattr(_sdk(service), name).__module__]
    found: type = getattr(module, f"{name}InitArgs", None) or getattr(module, f"{name}Args")
    return found


def _output_names(resource: Resource) -> set[str]:
    service, _, rest = resource.token.removeprefix("aws:").partition("/")
    cls = getattr(_sdk(service), rest.partition(":")[2])
    found = [member for member in vars(cls).values() if isinstance(member, property)]
    return {getattr(one.fget, "_pulumi_name", "") or one.fget.__name__ for one in found}


def _spelled(annotation: Any) -> Any:
    """The first thing in an annotation that is not a wrapper: str, a Sequence, a class by name."""
    if isinstance(annotation, typing.ForwardRef):
        return annotation.__forward_arg__
    if typing.get_origin(annotation) is typing.Union:
        return _spelled(typing.get_args(annotation)[0])
    return annotation


def _compared(path: str, props: Mapping[str, Prop], cls: type, module: str) -> Iterator[str]:
    """One line for each disagreement of a table with the SDK."""
    pulumi_names = input_type_py_to_pulumi_names(cls)
    parameters = inspect.signature(cls.__init__).parameters
    known = {pulumi_names[name]: one for name, one in parameters.items() if name in pulumi_names}
    for name, prop in props.items():
        where = f"{path}.{name}"
        if name not in known:
            yield f"{where} is not in the SDK"
            continue
        if prop.required and known[name].default is not inspect.Parameter.empty and where not in STRICTER:
            yield f"{where} is optional in the SDK"
        yield from _kind_compared(where, prop, known[name].annotation, module)
    for name, one in known.items():
        if one.default is inspect.Parameter.empty and not (name in props and props[name].required):
            yield f"{path}.{name} is required in the SDK"


def _kind_compared(path: str, prop: Prop, annotation: Any, module: str) -> Iterator[str]:
    spelled = _spelled(annotation)
    expected = SPELLINGS[prop.kind]
    if prop.kind is PropertyKind.BLOCK:
        if not isinstance(spelled, str):
            yield f"{path} is {spelled} in the SDK"
            return
        yield from _compared(path, prop.fields, getattr(importlib.import_module(module), spelled), module)
    elif prop.kind in {PropertyKind.LIST, PropertyKind.SET} and prop.item and typing.get_origin(spelled) is Sequence:
        yield from _kind_compared(f"{path}[]", prop.item, typing.get_args(spelled)[0], module)
    elif (typing.get_origin(spelled) or spelled) is not expected:
        yield f"{path} is {spelled} in the SDK and {prop.kind} here"


@pytest.mark.parametrize("token", sorted(RESOURCES))
def test_the_table_of_a_type_agrees_with_the_sdk(token: str) -> None:
    resource = RESOURCES[token]
    cls = _arguments(resource)
    props = {name: prop for name, prop in resource.inputs.items() if name != "tagsAll"}
    module = f"pulumi_aws.{token.removeprefix('aws:').partition('/')[0]}._inputs"
    assert list(_compared(token, props, cls, module)) == []


@pytest.mark.parametrize("token", sorted(RESOURCES))
def test_the_outputs_of_a_type_are_outputs_in_the_sdk(token: str) -> None:
    assert set(RESOURCES[token].outputs) - _output_names(RESOURCES[token]) == set()


@pytest.mark.parametrize("token", sorted(RESOURCES))
def test_a_type_is_taggable_exactly_where_it_is_in_the_sdk(token: str) -> None:
    resource = RESOURCES[token]
    assert (resource.retag is not None) == ("tagsAll" in _output_names(resource))


@pytest.mark.parametrize("token", sorted(RESOURCES))
def test_a_type_has_a_region_exactly_where_it_has_one_in_the_sdk(token: str) -> None:
    resource = RESOURCES[token]
    assert resource.is_global == ("region" not in _output_names(resource))


def test_every_type_that_the_stacks_use_has_a_table() -> None:
    names = sorted(token.rpartition(":")[2] for token in RESOURCES)
    assert " ".join(names) == (
        "Alias BackupPolicy Bucket BucketLifecycleConfiguration BucketObjectv2 BucketOwnershipControls BucketPolicy "
        "BucketPublicAccessBlock BucketServerSideEncryptionConfiguration BucketVersioning Budget "
        "DataRepositoryAssociation Eip FileSystem Instance InstanceProfile InternetGateway Key LaunchTemplate Listener "
        "LoadBalancer LogGroup LustreFileSystem MetricAlarm MountTarget NatGateway NetworkInterface Parameter "
        "PlacementGroup Policy Record Role RolePolicy Route RouteTable RouteTableAssociation Secret SecurityGroup "
        "SecurityGroupEgressRule SecurityGroupIngressRule Subnet SubnetCidrReservation TargetGroup "
        "TargetGroupAttachment Topic TopicSubscription Volume VolumeAttachment Vpc VpcEndpoint Zone"
    )
