"""Whether a VPC and subnets of somebody else's are such that a base can stand in them. Pure: facts to sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network

from corral.model.base import BasePlan, ZonePlan
from corral.model.cluster import ClusterPlan
from corral.plan.addresses import taken_addresses

# Without a way out, Session Manager is reached by these (Systems Manager User Guide, "Create VPC endpoints").
SHELL_SERVICES = ("ssm", "ssmmessages")
_LEADS_OUT = ("nat-", "tgw-", "vgw-", "eni-", "i-", "vpce-", "lgw-", "cagw-")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubnetFacts:
    """A subnet as EC2 has it. `default_route`: the target of 0.0.0.0/0 in its route table, None without one.

    `own`: addresses that the cluster takes there already, and the file systems that it mounts.
    """

    vpc: str
    zone_id: str
    zone_name: str
    cidr: IPv4Network
    free: int
    own: int
    default_route: str | None
    reaches_s3: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MountTargetFacts:
    """A mount target of the base's home, which an earlier life kept, as EFS has it."""

    id: str
    file_system: str
    vpc: str
    subnet: str
    zone_id: str
    zone_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptionFacts:
    """What the account says. `taken`: of the addresses that the plan fixes, those in use, with what uses them.

    `endpoints`: the services that have an interface endpoint in the VPC, by their short names. `home`: the mount
    targets that the base's home has, in whatever VPC. Those of other file systems stand in nobody's way: they take
    addresses, which `free` does not count any more.
    """

    has_vpc: bool
    dns_support: bool = False
    dns_hostnames: bool = False
    subnets: Mapping[str, SubnetFacts] = field(default_factory=dict)
    endpoints: Collection[str] = ()
    taken: Mapping[str, str] = field(default_factory=dict)
    home: Collection[MountTargetFacts] = ()


def adoption_problems(base: BasePlan, cluster: ClusterPlan, facts: AdoptionFacts) -> tuple[str, ...]:
    """Everything that stands in the way, a sentence each, the VPC first; nothing for a base with a VPC of its own."""
    if base.adopted_vpc is None:
        return ()
    if not facts.has_vpc:
        return (f"{base.adopted_vpc} is not in this account and region",)
    subnets = (problem for zone in base.zones for problem in _subnet(base, zone, cluster, facts))
    return (*_vpc(base.adopted_vpc, facts), *_home(base, facts), *subnets, *_head(cluster, facts))


def _vpc(vpc: str, facts: AdoptionFacts) -> Iterator[str]:
    for name, is_on, what in (
        ("DNS resolution", facts.dns_support, "no name is found"),
        ("DNS hostnames", facts.dns_hostnames, "EFS and private zones answer by no name"),
    ):
        if not is_on:
            yield f"{vpc} has {name} off, without which {what} - turn it on in the VPC's settings"


def _home(base: BasePlan, facts: AdoptionFacts) -> Iterator[str]:
    """A file system has mount targets in one VPC alone, and one in a zone. Source: EFS API, CreateMountTarget."""
    for target in facts.home:
        has = f"{target.file_system}, the home of base {base.name}, has {target.id} in"
        zone = next((zone for zone in base.zones if zone.zone_id in (target.zone_id, target.zone_name)), None)
        if target.vpc != base.adopted_vpc:
            yield f"{has} {target.vpc}, and a file system has mount targets in one VPC alone - delete that one first"
        elif zone and zone.subnet != target.subnet:
            yield (
                f"{has} {target.subnet}, and EFS takes one alone in {zone.zone_id}"
                " - give the base that subnet, or delete that one first"
            )


def _subnet(base: BasePlan, zone: ZonePlan, cluster: ClusterPlan, facts: AdoptionFacts) -> Iterator[str]:
    id = zone.subnet or ""
    found = facts.subnets.get(id)
    if found is None:
        yield f"{id} is not in this account and region"
        return
    if found.vpc != base.adopted_vpc:
        yield f"{id} belongs to {found.vpc}, not to {base.adopted_vpc}"
    if zone.zone_id not in (found.zone_id, found.zone_name):
        yield f"{id} is in {found.zone_id} ({found.zone_name}), not in {zone.zone_id}"
    if found.cidr != zone.private:
        yield f"{id} has the range {found.cidr}, not {zone.private}"
    yield from _ways(id, found, facts)
    if found.free + found.own < (needed := taken_addresses(cluster, zone)):
        yield f"{id} has {found.free + found.own:,} addresses for {cluster.name}, whose nodes take up to {needed:,}"


def _ways(id: str, subnet: SubnetFacts, facts: AdoptionFacts) -> Iterator[str]:
    route = subnet.default_route
    if route is not None and route.startswith("igw-"):
        yield (
            f"{id} leads out through {route}, which serves public addresses alone, and machines have none"
            " - use a private subnet with a NAT gateway"
        )
        return
    leads_out = route is not None and route.startswith(_LEADS_OUT)
    if not leads_out and not subnet.reaches_s3:
        yield f"{id} reaches no S3 - give its route table a gateway endpoint for S3, or a way out through NAT"
    missing = [service for service in SHELL_SERVICES if service not in facts.endpoints]
    if not leads_out and missing:
        services = ", ".join(missing)
        yield f"{id} reaches no Session Manager - give the VPC endpoints for {services}, or a way out through NAT"


def _head(cluster: ClusterPlan, facts: AdoptionFacts) -> Iterator[str]:
    address = str(cluster.head.address)
    if user := facts.taken.get(address):
        yield f"{address}, which the head of {cluster.name} is to have, is taken by {user} - use another one"
