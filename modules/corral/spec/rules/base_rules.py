"""Rules about a base, beyond the types of its fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Network

from corral.spec.models.addresses import PRIVATE_NETWORKS
from corral.spec.models.base import AdoptSpec, BaseSpecInput, BudgetSpec, NetworkSpec
from corral.spec.rules import lustre_rules, name_rules, tag_rules
from corral.spec.spec_errors import Loc, SpecFinding
from corral.spec.validation_context import ValidationContext

_DOCKER = IPv4Network("172.17.0.0/16")
_WIDEST, _NARROWEST = 16, 20  # prefix lengths: AWS's largest VPC, and the smallest with 500 addresses per zone
_NARROWEST_ADOPTED = 24  # 256 addresses: a head, file systems and some dozens of nodes
_VPC_ID, _SUBNET_ID = (re.compile(rf"{kind}-([0-9a-f]{{8}}|[0-9a-f]{{17}})") for kind in ("vpc", "subnet"))
_EMAIL = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+")


def check(spec: BaseSpecInput, context: ValidationContext) -> Iterator[SpecFinding]:
    """Yield findings about this base in its region."""
    network = spec.network
    if network.adopt:
        yield from _check_adopted(network, network.adopt, context.region)
    else:
        yield from _check_cidr(network.cidr)
        yield from _check_zones(network, context.region)
    yield from _check_endpoints(network)
    yield from lustre_rules.check_kept(spec.storage.lustre, network, context)
    if spec.budget:
        yield from _check_notify(spec.budget)
    yield from tag_rules.check(spec.tags)


def _check_cidr(cidr: IPv4Network) -> Iterator[SpecFinding]:
    loc = ("network", "cidr")
    if cidr.prefixlen < _WIDEST:
        yield SpecFinding(
            loc, f"{cidr} holds {cidr.num_addresses} addresses; a VPC holds at most 65536", f"use a /{_WIDEST}"
        )
    elif cidr.prefixlen > _NARROWEST:
        yield SpecFinding(
            loc, f"{cidr} holds {cidr.num_addresses} addresses; the subnets need 4096", f"use a /{_NARROWEST} or larger"
        )
    if not any(cidr.subnet_of(private) for private in PRIVATE_NETWORKS):
        yield SpecFinding(loc, f"{cidr} is not private", "use a range inside 10.0.0.0/8, such as 10.64.0.0/16")
    elif cidr.overlaps(_DOCKER):
        yield SpecFinding(loc, f"{cidr} overlaps {_DOCKER}, which Docker uses on every machine", "use another range")


def _check_zones(network: NetworkSpec, region: str) -> Iterator[SpecFinding]:
    loc: Loc = ("network", "zones")
    if not network.zones:
        yield SpecFinding(loc, "is missing", "add at least one zone, such as [use1-az4], or adopt a VPC")
    locs = [(*loc, number) for number in range(len(network.zones))]
    yield from name_rules.check_region_zones(locs, network.zones, region)


def _check_adopted(network: NetworkSpec, adopt: AdoptSpec, region: str) -> Iterator[SpecFinding]:
    for name in ("cidr", "zones", "interface_endpoints"):
        if name in network.model_fields_set:
            yield SpecFinding(
                ("network", name), "applies to a VPC that corral creates; this base adopts one", "remove it"
            )
    loc: Loc = ("network", "adopt")
    if not _VPC_ID.fullmatch(adopt.vpc):
        yield SpecFinding((*loc, "vpc"), f"{adopt.vpc!r} is not a VPC id", "write it like vpc-0123456789abcdef0")
    locs = [(*loc, "subnets", number) for number in range(len(adopt.subnets))]
    zones = [subnet.zone for subnet in adopt.subnets]
    yield from name_rules.check_region_zones([(*loc, "zone") for loc in locs], zones, region)
    for number, (at, subnet) in enumerate(zip(locs, adopt.subnets, strict=True)):
        if not _SUBNET_ID.fullmatch(subnet.id):
            yield SpecFinding(
                (*at, "id"), f"{subnet.id!r} is not a subnet id", "write it like subnet-0123456789abcdef0"
            )
        if subnet.cidr.prefixlen > _NARROWEST_ADOPTED:
            small = f"{subnet.cidr} holds {subnet.cidr.num_addresses} addresses"
            yield SpecFinding((*at, "cidr"), small, f"use a subnet of /{_NARROWEST_ADOPTED} or larger")
        for earlier, other in enumerate(adopt.subnets[:number]):
            if subnet.cidr.overlaps(other.cidr):
                yield SpecFinding(
                    (*at, "cidr"), f"{subnet.cidr} overlaps {other.cidr} of entry {earlier}", "use separate ranges"
                )


def _check_endpoints(network: NetworkSpec) -> Iterator[SpecFinding]:
    for number, service in enumerate(network.interface_endpoints):
        if service in network.interface_endpoints[:number]:
            yield SpecFinding(("network", "interface_endpoints", number), f"{service!r} is listed twice", "keep one")


def _check_notify(budget: BudgetSpec) -> Iterator[SpecFinding]:
    for number, address in enumerate(budget.notify):
        if not _EMAIL.fullmatch(address) or not address.isprintable():
            yield SpecFinding(
                ("budget", "notify", number), f"{address!r} is not an email address", "write it like a@b.example"
            )
        elif address in budget.notify[:number]:
            yield SpecFinding(("budget", "notify", number), f"{address!r} is listed twice", "keep one")
