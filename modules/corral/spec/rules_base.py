"""Rules about a base, beyond the shape of its fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Network

from corral.spec import rules_lustre, rules_names, rules_tags
from corral.spec.base import AdoptSpec, BaseWishes, BudgetSpec, NetworkSpec
from corral.spec.errors import Finding, Loc
from corral.spec.surroundings import Surroundings

_PRIVATE = tuple(IPv4Network(range_) for range_ in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"))
_DOCKER = IPv4Network("172.17.0.0/16")
_WIDEST, _NARROWEST = 16, 20  # prefix lengths: AWS's largest VPC, and the least that gives a zone 500 addresses
_NARROWEST_ADOPTED = 24  # 256 addresses: a head, file systems and some dozens of nodes
_VPC_ID, _SUBNET_ID = (re.compile(rf"{kind}-([0-9a-f]{{8}}|[0-9a-f]{{17}})") for kind in ("vpc", "subnet"))
_EMAIL = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+")


def check(wishes: BaseWishes, around: Surroundings) -> Iterator[Finding]:
    """What is wrong with this base in its region."""
    network = wishes.network
    if network.adopt:
        yield from _check_adopted(network, network.adopt, around.region)
    else:
        yield from _check_cidr(network.cidr)
        yield from _check_zones(network, around.region)
    yield from _check_endpoints(network)
    yield from rules_lustre.check_kept(wishes.storage.lustre, network, around)
    if wishes.budget:
        yield from _check_notify(wishes.budget)
    yield from rules_tags.check(wishes.tags)


def _check_cidr(cidr: IPv4Network) -> Iterator[Finding]:
    loc = ("network", "cidr")
    if cidr.prefixlen < _WIDEST:
        yield Finding(loc, f"{cidr} holds {cidr.num_addresses} addresses, a VPC at most 65536 - use a /{_WIDEST}")
    elif cidr.prefixlen > _NARROWEST:
        yield Finding(
            loc, f"{cidr} holds {cidr.num_addresses} addresses, the subnets need 4096 - use a /{_NARROWEST} or larger"
        )
    if not any(cidr.subnet_of(private) for private in _PRIVATE):
        yield Finding(loc, f"{cidr} is not private - use a range inside 10.0.0.0/8, such as 10.64.0.0/16")
    elif cidr.overlaps(_DOCKER):
        yield Finding(loc, f"{cidr} overlaps {_DOCKER}, which Docker takes on every machine - use another range")


def _check_zones(network: NetworkSpec, region: str) -> Iterator[Finding]:
    loc: Loc = ("network", "zones")
    if not network.zones:
        yield Finding(loc, "is missing - give at least one zone, such as [use1-az4], or adopt a VPC")
    places = [(*loc, number) for number in range(len(network.zones))]
    yield from rules_names.check_region_zones(places, network.zones, region)


def _check_adopted(network: NetworkSpec, adopt: AdoptSpec, region: str) -> Iterator[Finding]:
    for name in ("cidr", "zones", "interface_endpoints"):
        if name in network.model_fields_set:
            yield Finding(("network", name), "is for a VPC of corral's own, this base adopts one - leave it out")
    loc: Loc = ("network", "adopt")
    if not _VPC_ID.fullmatch(adopt.vpc):
        yield Finding((*loc, "vpc"), f"{adopt.vpc!r} is not the id of a VPC - it looks like vpc-0123456789abcdef0")
    places = [(*loc, "subnets", number) for number in range(len(adopt.subnets))]
    zones = [subnet.zone for subnet in adopt.subnets]
    yield from rules_names.check_region_zones([(*place, "zone") for place in places], zones, region)
    for number, (place, subnet) in enumerate(zip(places, adopt.subnets, strict=True)):
        if not _SUBNET_ID.fullmatch(subnet.id):
            message = f"{subnet.id!r} is not the id of a subnet - it looks like subnet-0123456789abcdef0"
            yield Finding((*place, "id"), message)
        if subnet.cidr.prefixlen > _NARROWEST_ADOPTED:
            small = f"{subnet.cidr} holds {subnet.cidr.num_addresses} addresses"
            yield Finding((*place, "cidr"), f"{small} - use a subnet of /{_NARROWEST_ADOPTED} or larger")
        for earlier, other in enumerate(adopt.subnets[:number]):
            if subnet.cidr.overlaps(other.cidr):
                message = f"{subnet.cidr} overlaps {other.cidr} of entry {earlier} - two subnets of a VPC never do"
                yield Finding((*place, "cidr"), message)


def _check_endpoints(network: NetworkSpec) -> Iterator[Finding]:
    for number, service in enumerate(network.interface_endpoints):
        if service in network.interface_endpoints[:number]:
            yield Finding(("network", "interface_endpoints", number), f"{service!r} is listed twice - keep one")


def _check_notify(budget: BudgetSpec) -> Iterator[Finding]:
    for number, address in enumerate(budget.notify):
        if not _EMAIL.fullmatch(address):
            yield Finding(
                ("budget", "notify", number), f"{address!r} is not a mail address - write it like a@b.example"
            )
        elif address in budget.notify[:number]:
            yield Finding(("budget", "notify", number), f"{address!r} is listed twice - keep one")
