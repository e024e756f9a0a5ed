"""EC2 resources with corral's tags, one describe call per kind. Omits deleted ones, which EC2 lists for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from corral.inventory.resources import AwsResource, ResourceKind
from corral.model.printable import escape
from corral.model.tags import BASE_TAG, has_tag_filter

TERMINAL_STATES = frozenset({"terminated", "shutting-down", "deleted", "deleting", "failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """How to list a kind: the call, the list's key in the response, and the names of its fields."""

    kind: ResourceKind
    call: str
    answer: str
    id: str
    filter: str = "Filters"
    state: str = "State"
    type: str = ""


_READERS = (
    _Reader(
        kind=ResourceKind.INSTANCE,
        call="describe_instances",
        answer="Reservations",
        id="InstanceId",
        type="InstanceType",
    ),
    _Reader(kind=ResourceKind.VOLUME, call="describe_volumes", answer="Volumes", id="VolumeId", type="VolumeType"),
    _Reader(
        kind=ResourceKind.INTERFACE,
        call="describe_network_interfaces",
        answer="NetworkInterfaces",
        id="NetworkInterfaceId",
        state="Status",
    ),
    _Reader(
        kind=ResourceKind.NAT_GATEWAY,
        call="describe_nat_gateways",
        answer="NatGateways",
        id="NatGatewayId",
        filter="Filter",
    ),
    _Reader(kind=ResourceKind.ADDRESS, call="describe_addresses", answer="Addresses", id="AllocationId"),
    _Reader(
        kind=ResourceKind.ENDPOINT,
        call="describe_vpc_endpoints",
        answer="VpcEndpoints",
        id="VpcEndpointId",
        type="VpcEndpointType",
    ),
    _Reader(
        kind=ResourceKind.LAUNCH_TEMPLATE,
        call="describe_launch_templates",
        answer="LaunchTemplates",
        id="LaunchTemplateId",
    ),
    _Reader(
        kind=ResourceKind.PLACEMENT_GROUP, call="describe_placement_groups", answer="PlacementGroups", id="GroupName"
    ),
    _Reader(kind=ResourceKind.SECURITY_GROUP, call="describe_security_groups", answer="SecurityGroups", id="GroupId"),
    _Reader(kind=ResourceKind.ROUTE_TABLE, call="describe_route_tables", answer="RouteTables", id="RouteTableId"),
    _Reader(kind=ResourceKind.SUBNET, call="describe_subnets", answer="Subnets", id="SubnetId"),
    _Reader(
        kind=ResourceKind.INTERNET_GATEWAY,
        call="describe_internet_gateways",
        answer="InternetGateways",
        id="InternetGatewayId",
    ),
    _Reader(kind=ResourceKind.VPC, call="describe_vpcs", answer="Vpcs", id="VpcId"),
)


def read_ec2(ec2: Any) -> Iterator[AwsResource]:
    """Every EC2 resource with the base's tag that still exists. `ec2`: a boto3 client."""
    for reader in _READERS:
        for item in _items(ec2, reader):
            resource = _resource(reader, item)
            if resource.state not in TERMINAL_STATES:
                yield resource


def _items(ec2: Any, reader: _Reader) -> Iterator[Mapping[str, Any]]:
    arguments = {reader.filter: [has_tag_filter(BASE_TAG)]}
    if not ec2.can_paginate(reader.call):
        yield from getattr(ec2, reader.call)(**arguments)[reader.answer]
        return
    for page in ec2.get_paginator(reader.call).paginate(**arguments):
        for item in page[reader.answer]:
            yield from item["Instances"] if reader.kind is ResourceKind.INSTANCE else (item,)


def _resource(reader: _Reader, item: Mapping[str, Any]) -> AwsResource:
    state = item.get(reader.state)
    placement = item.get("Placement", {})
    return AwsResource(
        kind=reader.kind,
        id=item[reader.id],
        tags=tags_of(item.get("Tags", item.get("TagSet", []))),
        state=state["Name"] if isinstance(state, Mapping) else state,
        size_gib=item.get("Size"),
        type=item.get(reader.type),
        market=_market(item) if reader.kind is ResourceKind.INSTANCE else None,
        zone=placement.get("AvailabilityZone", item.get("AvailabilityZone")),
        address=item.get("PrivateIpAddress"),
        since=item.get("LaunchTime"),
        launch_index=item.get("AmiLaunchIndex"),
    )


def instance_of(item: Mapping[str, Any]) -> AwsResource:
    """The instance of one item of DescribeInstances."""
    return _resource(_READERS[0], item)


def tags_of(pairs: Any) -> Mapping[str, str]:
    """The tags as a mapping, from the list of keys and values that most services give.

    As printable text: whoever may set tags would otherwise write to the terminals of people who list resources.
    """
    return {escape(pair["Key"]): escape(pair["Value"]) for pair in pairs}


def _market(item: Mapping[str, Any]) -> str:
    return str(item.get("InstanceLifecycle", "on-demand"))
