"""Whether adopted VPC and subnets fit the base. Pure; `existing_vpc_facts` fetches the facts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network

from corral.model.base import BasePlan, ZonePlan
from corral.model.cluster import ClusterPlan
from corral.plan.addresses import max_addresses
from corral.preflight.preflight_findings import FindingBuilder, PreflightFinding, PreflightRequest

_FINDINGS = FindingBuilder(check="network")
_SEE_DOCS = "see docs/spec.md, network.adopt"

# Without a way out, Session Manager is reached by these (Systems Manager User Guide, "Create VPC endpoints").
SHELL_SERVICES = ("ssm", "ssmmessages")
_LEADS_OUT = ("nat-", "tgw-", "vgw-", "eni-", "i-", "vpce-", "lgw-", "cagw-")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubnetFacts:
    """A subnet as EC2 describes it. `default_route`: the target of 0.0.0.0/0 in its route table, None without one.

    `own`: addresses in it that the cluster's interfaces and its file systems already use.
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
    """A mount target of the base's home, as EFS describes it."""

    id: str
    file_system: str
    vpc: str
    subnet: str
    zone_id: str
    zone_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingVpcFacts:
    """The facts of the account. `taken`: which of the addresses that the plan fixes are in use, and what uses them.

    `endpoints`: short names of the services with an interface endpoint in the VPC. `home`: the mount targets of the
    base's home, in whatever VPC. Mount targets of other file systems only take addresses, and `free` excludes those.
    """

    has_vpc: bool
    dns_support: bool = False
    dns_hostnames: bool = False
    subnets: Mapping[str, SubnetFacts] = field(default_factory=dict)
    endpoints: Collection[str] = ()
    taken: Mapping[str, str] = field(default_factory=dict)
    home: Collection[MountTargetFacts] = ()


def evaluate(request: PreflightRequest, facts: ExistingVpcFacts | None) -> Iterator[PreflightFinding]:
    """Every problem of the adopted VPC; one 'ok' if it has none, or if the base creates its own."""
    base = request.base
    if base.adopted_vpc is None or facts is None:
        yield _FINDINGS.ok("VPC", f"created by the base: {base.vpc_cidr}")
        return
    problems = tuple(_problems(base, base.adopted_vpc, request.cluster, facts))
    yield from problems
    if not problems:
        yield _FINDINGS.ok(base.adopted_vpc, f"has {len(base.zones)} subnets with free addresses and a route out")


def _problems(base: BasePlan, vpc: str, cluster: ClusterPlan, facts: ExistingVpcFacts) -> Iterator[PreflightFinding]:
    if not facts.has_vpc:
        yield _FINDINGS.fail(vpc, "not found in this account and region", _SEE_DOCS)
        return
    yield from _vpc(vpc, facts)
    yield from _home(base, vpc, facts)
    for zone in base.zones:
        yield from _subnet(vpc, zone, cluster, facts)
    address = str(cluster.head.address)
    if user := facts.taken.get(address):
        yield _FINDINGS.fail(address, f"the head of {cluster.name} needs it, but {user} uses it", "use another address")


def _vpc(vpc: str, facts: ExistingVpcFacts) -> Iterator[PreflightFinding]:
    for name, is_on, effect in (
        ("DNS resolution", facts.dns_support, "no name resolves"),
        ("DNS hostnames", facts.dns_hostnames, "names of EFS and of private zones do not resolve"),
    ):
        if not is_on:
            yield _FINDINGS.fail(vpc, f"{name} is off: {effect}", "turn it on in the VPC's settings")


def _home(base: BasePlan, vpc: str, facts: ExistingVpcFacts) -> Iterator[PreflightFinding]:
    """A file system has mount targets in one VPC only, and one in a zone. Source: EFS API, CreateMountTarget."""
    for target in facts.home:
        about = f"home {target.file_system}"
        zone = next((zone for zone in base.zones if zone.zone_id in (target.zone_id, target.zone_name)), None)
        if target.vpc != vpc:
            message = f"has mount target {target.id} in {target.vpc}; EFS allows mount targets in one VPC only"
            yield _FINDINGS.fail(about, message, f"delete {target.id} first")
        elif zone and zone.subnet != target.subnet:
            message = f"has mount target {target.id} in {target.subnet}; EFS allows one in {zone.zone_id}"
            yield _FINDINGS.fail(about, message, f"use {target.subnet} for the base, or delete {target.id} first")


def _subnet(vpc: str, zone: ZonePlan, cluster: ClusterPlan, facts: ExistingVpcFacts) -> Iterator[PreflightFinding]:
    id = zone.subnet or ""
    found = facts.subnets.get(id)
    if found is None:
        yield _FINDINGS.fail(id, "not found in this account and region", _SEE_DOCS)
        return
    if found.vpc != vpc:
        yield _FINDINGS.fail(id, f"belongs to {found.vpc}, not to {vpc}", _SEE_DOCS)
    if zone.zone_id not in (found.zone_id, found.zone_name):
        message = f"is in {found.zone_id} ({found.zone_name}), not in {zone.zone_id}"
        yield _FINDINGS.fail(id, message, _SEE_DOCS)
    if found.cidr != zone.private:
        yield _FINDINGS.fail(id, f"has the range {found.cidr}, not {zone.private}", f"cidr: {found.cidr}")
    yield from _routes(id, found, facts)
    if (left := found.free + found.own) < (needed := max_addresses(cluster, zone)):
        message = f"has {left:,} addresses for {cluster.name}, whose nodes use up to {needed:,}"
        yield _FINDINGS.fail(id, message, "lower nodes.max, or use a larger subnet")


def _routes(id: str, subnet: SubnetFacts, facts: ExistingVpcFacts) -> Iterator[PreflightFinding]:
    route = subnet.default_route
    if route is not None and route.startswith("igw-"):
        message = f"routes out through {route}, which serves public addresses only, and instances have none"
        yield _FINDINGS.fail(id, message, "use a private subnet with a NAT gateway")
        return
    if route is not None and route.startswith(_LEADS_OUT):
        return
    if not subnet.reaches_s3:
        yield _FINDINGS.fail(id, "cannot reach S3", "add an S3 gateway endpoint to its route table, or a NAT route")
    if missing := [service for service in SHELL_SERVICES if service not in facts.endpoints]:
        fix = f"add endpoints for {', '.join(missing)} to the VPC, or a NAT route"
        yield _FINDINGS.fail(id, "cannot reach Session Manager", fix)
