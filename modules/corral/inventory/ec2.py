"""EC2's things with corral's tags, one describe call a kind. EC2 forgets deleted things late: those are left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from corral.inventory.things import BASE_TAG, Kind, Thing

GONE = frozenset({"terminated", "shutting-down", "deleted", "deleting", "failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """How a kind is listed: the call, where its answer has the list, and which fields say what."""

    kind: Kind
    call: str
    answer: str
    id: str
    filter: str = "Filters"
    state: str = "State"
    type: str = ""


_READERS = (
    _Reader(kind=Kind.INSTANCE, call="describe_instances", answer="Reservations", id="InstanceId", type="InstanceType"),
    _Reader(kind=Kind.VOLUME, call="describe_volumes", answer="Volumes", id="VolumeId", type="VolumeType"),
    _Reader(
        kind=Kind.INTERFACE,
        call="describe_network_interfaces",
        answer="NetworkInterfaces",
        id="NetworkInterfaceId",
        state="Status",
    ),
    _Reader(
        kind=Kind.NAT_GATEWAY, call="describe_nat_gateways", answer="NatGateways", id="NatGatewayId", filter="Filter"
    ),
    _Reader(kind=Kind.ADDRESS, call="describe_addresses", answer="Addresses", id="AllocationId"),
    _Reader(
        kind=Kind.ENDPOINT,
        call="describe_vpc_endpoints",
        answer="VpcEndpoints",
        id="VpcEndpointId",
        type="VpcEndpointType",
    ),
    _Reader(
        kind=Kind.LAUNCH_TEMPLATE, call="describe_launch_templates", answer="LaunchTemplates", id="LaunchTemplateId"
    ),
    _Reader(kind=Kind.PLACEMENT_GROUP, call="describe_placement_groups", answer="PlacementGroups", id="GroupName"),
    _Reader(kind=Kind.SECURITY_GROUP, call="describe_security_groups", answer="SecurityGroups", id="GroupId"),
    _Reader(kind=Kind.ROUTE_TABLE, call="describe_route_tables", answer="RouteTables", id="RouteTableId"),
    _Reader(kind=Kind.SUBNET, call="describe_subnets", answer="Subnets", id="SubnetId"),
    _Reader(
        kind=Kind.INTERNET_GATEWAY, call="describe_internet_gateways", answer="InternetGateways", id="InternetGatewayId"
    ),
    _Reader(kind=Kind.VPC, call="describe_vpcs", answer="Vpcs", id="VpcId"),
)


def read_ec2(ec2: Any) -> Iterator[Thing]:
    """Every thing of EC2 that carries the base's tag and still exists. `ec2`: a boto3 client."""
    for reader in _READERS:
        for item in _items(ec2, reader):
            thing = _thing(reader, item)
            if thing.state not in GONE:
                yield thing


def _items(ec2: Any, reader: _Reader) -> Iterator[Mapping[str, Any]]:
    wanted = {reader.filter: [{"Name": "tag-key", "Values": [BASE_TAG]}]}
    if not ec2.can_paginate(reader.call):
        yield from getattr(ec2, reader.call)(**wanted)[reader.answer]
        return
    for page in ec2.get_paginator(reader.call).paginate(**wanted):
        for item in page[reader.answer]:
            yield from item["Instances"] if reader.kind is Kind.INSTANCE else (item,)


def _thing(reader: _Reader, item: Mapping[str, Any]) -> Thing:
    state = item.get(reader.state)
    placement = item.get("Placement", {})
    return Thing(
        kind=reader.kind,
        id=item[reader.id],
        tags=tags_of(item.get("Tags", item.get("TagSet", []))),
        state=state["Name"] if isinstance(state, Mapping) else state,
        size_gib=item.get("Size"),
        type=item.get(reader.type),
        market=_market(item) if reader.kind is Kind.INSTANCE else None,
        zone=placement.get("AvailabilityZone", item.get("AvailabilityZone")),
        address=item.get("PrivateIpAddress"),
        since=item.get("LaunchTime"),
        launch_index=item.get("AmiLaunchIndex"),
    )


def instance_of(item: Mapping[str, Any]) -> Thing:
    """The instance that DescribeInstances gives so."""
    return _thing(_READERS[0], item)


def tags_of(pairs: Any) -> Mapping[str, str]:
    """The tags as a mapping, from the list of keys and values that most services give."""
    return {pair["Key"]: pair["Value"] for pair in pairs}


def _market(item: Mapping[str, Any]) -> str:
    return str(item.get("InstanceLifecycle", "on-demand"))
