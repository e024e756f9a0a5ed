"""Rules about login nodes: their type, their zones, the names and the home that they need, and who reaches them."""

from __future__ import annotations

from collections.abc import Iterator

from corral.model.cluster import LOGIN
from corral.model.enums import BalancerScheme
from corral.spec.models.addresses import PRIVATE_NETWORKS
from corral.spec.models.base import BaseSpec
from corral.spec.models.cluster import ClusterSpecInput, LoadBalancerSpec, LoginSpec
from corral.spec.rules import name_rules, queue_rules
from corral.spec.spec_errors import SpecFinding
from corral.spec.validation_context import ValidationContext

WIDEST = 8  # bits of a network's prefix: the widest private network is 10.0.0.0/8


def check(spec: ClusterSpecInput, context: ValidationContext) -> Iterator[SpecFinding]:
    """Yield findings about login nodes, if there are any, and queues of their name."""
    for number, queue in enumerate(spec.queues):
        if queue.name == LOGIN:
            yield SpecFinding(
                ("queues", number, "name"),
                f"{LOGIN!r} is the name of login nodes, such as {LOGIN}-1",
                "use another name",
            )
    if (login := spec.login) is None:
        return
    yield from queue_rules.check_type(("login", "instance_type"), login.instance_type, context)
    for number, zone in enumerate(login.zones):
        loc = ("login", "zones", number)
        if zone in login.zones[:number]:
            yield SpecFinding(loc, f"{zone!r} is listed twice", "keep one")
        else:
            yield from name_rules.check_base_zone(loc, zone, context)
    if (more := len(login.zones)) > login.count:
        yield SpecFinding(
            ("login", "zones"), f"{more} zones for {login.count} login node{'s' * (login.count > 1)}", "remove some"
        )
    if context.base and context.base.storage.home is None:
        yield SpecFinding(
            ("login",),
            f"people's files on a login node would be on no other machine: base {context.base.name!r} has no home",
            "set `home: {}` in its `storage`",
        )
    if login.load_balancer:
        yield from _check_allowed(login.load_balancer)
        yield from _check_people(spec)
        if context.base and login.load_balancer.scheme is BalancerScheme.INTERNET_FACING:
            yield from _check_public_zone(spec, login, context.base)


def _check_allowed(balancer: LoadBalancerSpec) -> Iterator[SpecFinding]:
    for number, network in enumerate(balancer.allow):
        loc = ("login", "load_balancer", "allow", number)
        if network in balancer.allow[:number]:
            yield SpecFinding(loc, f"{network} is listed twice", "keep one")
        elif network.prefixlen < WIDEST:
            yield SpecFinding(
                loc,
                f"{network} would let {network.num_addresses:,} addresses try to log in",
                f"list the networks that people come from, each /{WIDEST} or narrower; others use Session Manager",
            )
        elif balancer.scheme is BalancerScheme.INTERNET_FACING and any(map(network.overlaps, PRIVATE_NETWORKS)):
            yield SpecFinding(
                loc,
                f"{network} is private, and nobody comes from there through the internet",
                "use the public address of that network, or `scheme: internal`",
            )


def _check_people(spec: ClusterSpecInput) -> Iterator[SpecFinding]:
    access = spec.access
    if not (access.directory or any(user.ssh_keys for user in access.users.values())):
        yield SpecFinding(
            ("login", "load_balancer"),
            "nobody could log in through it: it needs people with ssh keys",
            "add ssh_keys to somebody in access.users, or access.directory",
        )
    if access.ssh_keys:
        yield SpecFinding(
            ("access", "ssh_keys"),
            "open the image's user to all networks that the load balancer allows, and nobody knows who that is",
            "move the keys to access.users",
        )


def _check_public_zone(spec: ClusterSpecInput, login: LoginSpec, base: BaseSpec) -> Iterator[SpecFinding]:
    """A load balancer reaches targets in its own zones alone, and a base has one public subnet.

    Source: Elastic Load Balancing User Guide, "How Elastic Load Balancing works" (Availability Zones).
    """
    if base.network.adopt:
        yield SpecFinding(
            ("login", "load_balancer", "scheme"),
            f"base {base.name!r} is in an existing VPC, of which it knows private subnets alone",
            "use `scheme: internal`",
        )
        return
    public = base.network.zone_names[0]
    zones = login.zones or (spec.head.zone or public,)
    if outside := [zone for zone in dict.fromkeys(zones) if zone in base.network.zone_names[1:]]:
        yield SpecFinding(
            ("login", "zones"),
            f"{', '.join(outside)}: an internet-facing load balancer of base {base.name!r} reaches {public} alone, the"
            " zone of its public subnet",
            f"use [{public}], or `scheme: internal`",
        )
