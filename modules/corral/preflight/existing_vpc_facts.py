"""Fetch the facts of an adopted VPC: its subnets, routes, endpoints, and who uses its addresses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any

from botocore.exceptions import ClientError

from corral.inventory.ec2_resources import tags_of
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.model.tags import BASE_TAG, CLUSTER_TAG, KEEP_TAG, tag_filter
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.existing_vpc_check import ExistingVpcFacts, MountTargetFacts, SubnetFacts
from corral.preflight.preflight_findings import PreflightRequest

_ANYWHERE = "0.0.0.0/0"
_TARGETS = ("NatGatewayId", "GatewayId", "TransitGatewayId", "NetworkInterfaceId", "InstanceId", "CarrierGatewayId")


def fetch(session: AwsQueryCache, request: PreflightRequest) -> ExistingVpcFacts | None:
    """The facts about the base's adopted VPC and subnets; None for a base that creates its own."""
    base, cluster = request.base, request.cluster
    if base.adopted_vpc is None:
        return None
    ec2, vpc = session.client("ec2"), base.adopted_vpc
    if not _described(ec2, "describe_vpcs", "Vpcs", VpcIds=[vpc]):
        return ExistingVpcFacts(has_vpc=False)
    in_vpc = [{"Name": "vpc-id", "Values": [vpc]}]
    tables = _described(ec2, "describe_route_tables", "RouteTables", Filters=in_vpc)
    endpoints = _described(ec2, "describe_vpc_endpoints", "VpcEndpoints", Filters=in_vpc)
    ids = [zone.subnet for zone in base.zones if zone.subnet]
    found = [one for id in ids for one in _described(ec2, "describe_subnets", "Subnets", SubnetIds=[id])]
    home = _home(session, base)
    own = Counter(target.subnet for target in home) + _lustre(session, cluster)
    return ExistingVpcFacts(
        has_vpc=True,
        dns_support=_attribute(ec2, vpc, "enableDnsSupport"),
        dns_hostnames=_attribute(ec2, vpc, "enableDnsHostnames"),
        subnets={one["SubnetId"]: _subnet(one, tables, endpoints, _own(ec2, cluster, one, own)) for one in found},
        endpoints=[_service(one) for one in endpoints if one["VpcEndpointType"] == "Interface"],
        taken=_taken(ec2, cluster, found),
        home=home,
    )


def _described(ec2: Any, call: str, answer: str, **arguments: Any) -> Sequence[Mapping[str, Any]]:
    try:
        return [item for page in ec2.get_paginator(call).paginate(**arguments) for item in page[answer]]
    except ClientError as error:
        if "NotFound" in error.response["Error"]["Code"]:
            return []
        raise


def _attribute(ec2: Any, vpc: str, name: str) -> bool:
    answer = ec2.describe_vpc_attribute(VpcId=vpc, Attribute=name)
    return bool(answer[name[0].upper() + name[1:]]["Value"])


def _home(session: Any, base: BasePlan) -> Sequence[MountTargetFacts]:
    """The mount targets of the base's home, found by its creation token."""
    if base.home is None:
        return ()
    efs = session.client("efs")
    systems = _described(efs, "describe_file_systems", "FileSystems", CreationToken=base.home.token)
    return tuple(
        MountTargetFacts(
            id=target["MountTargetId"],
            file_system=system["FileSystemId"],
            vpc=target["VpcId"],
            subnet=target["SubnetId"],
            zone_id=target["AvailabilityZoneId"],
            zone_name=target["AvailabilityZoneName"],
        )
        for system in systems
        for target in _described(efs, "describe_mount_targets", "MountTargets", FileSystemId=system["FileSystemId"])
    )


def _lustre(session: Any, cluster: ClusterPlan) -> Counter[str]:
    """Addresses by subnet that the file systems of the cluster and its base use."""
    addresses: Counter[str] = Counter()
    if not cluster.lustre:
        return addresses
    for system in _described(session.client("fsx"), "describe_file_systems", "FileSystems"):
        tags = tags_of(system.get("Tags", ()))
        is_kept = tags.get(BASE_TAG) == cluster.base and KEEP_TAG in tags
        if is_kept or tags.get(CLUSTER_TAG) == cluster.name:
            addresses[system["SubnetIds"][0]] += len(system.get("NetworkInterfaceIds", ()))
    return addresses


def _own(ec2: Any, cluster: ClusterPlan, subnet: Mapping[str, Any], systems: Mapping[str, int]) -> int:
    """Addresses in the subnet of the cluster's interfaces and of file systems, whose interfaces have no tags."""
    request = [
        {"Name": "subnet-id", "Values": [subnet["SubnetId"]]},
        tag_filter(CLUSTER_TAG, cluster.name),
    ]
    found = _described(ec2, "describe_network_interfaces", "NetworkInterfaces", Filters=request)
    return sum(len(one.get("PrivateIpAddresses", ())) for one in found) + systems.get(subnet["SubnetId"], 0)


def _subnet(
    item: Mapping[str, Any], tables: Sequence[Mapping[str, Any]], endpoints: Sequence[Mapping[str, Any]], own: int
) -> SubnetFacts:
    table = _table_of(item["SubnetId"], tables)
    routes = (table or {}).get("Routes", ())
    default: Mapping[str, Any] = next((route for route in routes if route.get("DestinationCidrBlock") == _ANYWHERE), {})
    gateways = [one for one in endpoints if one["VpcEndpointType"] == "Gateway" and _service(one) == "s3"]
    return SubnetFacts(
        vpc=item["VpcId"],
        zone_id=item["AvailabilityZoneId"],
        zone_name=item["AvailabilityZone"],
        cidr=IPv4Network(item["CidrBlock"]),
        free=int(item["AvailableIpAddressCount"]),
        own=own,
        default_route=next((default[name] for name in _TARGETS if default.get(name)), None),
        reaches_s3=table is not None and any(table["RouteTableId"] in one["RouteTableIds"] for one in gateways),
    )


def _table_of(subnet: str, tables: Sequence[Any]) -> Mapping[str, Any] | None:
    """The subnet's route table, or the VPC's main one."""
    main = None
    for table in tables:
        for association in table["Associations"]:
            if association.get("SubnetId") == subnet:
                return dict(table)
            main = table if association.get("Main") else main
    return dict(main) if main else None


def _service(endpoint: Mapping[str, Any]) -> str:
    return str(endpoint["ServiceName"]).rpartition(".")[2]


def _taken(ec2: Any, cluster: ClusterPlan, subnets: Collection[Mapping[str, Any]]) -> Mapping[str, str]:
    """The interface that uses the head's address, unless it is the head's own."""
    if not subnets:
        return {}
    request = [
        {"Name": "subnet-id", "Values": [one["SubnetId"] for one in subnets]},
        {"Name": "addresses.private-ip-address", "Values": [str(cluster.head.address)]},
    ]
    found = _described(ec2, "describe_network_interfaces", "NetworkInterfaces", Filters=request)
    others = [one for one in found if not _is_head(one, cluster.name)]
    return {str(cluster.head.address): one["NetworkInterfaceId"] for one in others}


def _is_head(interface: Mapping[str, Any], cluster: str) -> bool:
    return tags_of(interface.get("TagSet", ())).get(CLUSTER_TAG) == cluster
