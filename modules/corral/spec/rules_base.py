"""Rules about a base, beyond the shape of its fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Network

from corral.spec import rules_names, rules_tags
from corral.spec.base import BaseWishes, BudgetSpec, NetworkSpec
from corral.spec.errors import Finding

_PRIVATE = tuple(IPv4Network(range_) for range_ in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"))
_DOCKER = IPv4Network("172.17.0.0/16")
_WIDEST, _NARROWEST = 16, 20  # prefix lengths: AWS's largest VPC, and the least that gives a zone 500 addresses
_EMAIL = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+")


def check(wishes: BaseWishes, region: str) -> Iterator[Finding]:
    """What is wrong with this base in this region."""
    yield from _check_cidr(wishes.network.cidr)
    yield from rules_names.check_region_zones(("network", "zones"), wishes.network.zones, region)
    yield from _check_endpoints(wishes.network)
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
