"""Rules about a cluster, beyond the shape of its fields: its base, head, image and lifetime."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from corral.catalog.images import ImageProfile, image_profiles
from corral.catalog.instances import InstanceType, instance_types
from corral.catalog.names import suggestion
from corral.catalog.regions import regions
from corral.spec import rules_lustre, rules_names, rules_queues, rules_tags
from corral.spec.base import BaseSpec
from corral.spec.cluster import ClusterWishes, HeadSpec, ImageSpec, LifetimeSpec
from corral.spec.durations import format_duration
from corral.spec.errors import Finding, Loc

_IMAGE_ID = re.compile(r"ami-([0-9a-f]{8}|[0-9a-f]{17})")
_LONGEST_TTL = timedelta(days=30)
_SHORTEST_TTL = timedelta(minutes=30)  # head and first node alone take ten to boot
_SHORTEST_IDLE = timedelta(minutes=10)  # a cluster that has just come up is idle, too


def check(wishes: ClusterWishes, region: str, base: BaseSpec | None) -> Iterator[Finding]:
    """What is wrong with this cluster in this region, and on this base where it is known."""
    yield from _check_base(wishes, region, base)
    yield from _check_head(wishes.head, region, base)
    yield from _check_image(wishes.image)
    yield from _check_architectures(wishes)
    yield from rules_lustre.check(wishes.storage.lustre, region, base)
    yield from rules_queues.check(wishes.queues, region, base)
    yield from rules_queues.check_time_limits(wishes.queues, wishes.lifetime)
    yield from _check_lifetime(wishes.lifetime)
    yield from rules_tags.check(wishes.tags)


def architecture_problem(machine: InstanceType, profile: ImageProfile) -> str | None:
    """Why a machine of this type cannot boot an image of this profile; None where it can."""
    if machine.architecture == profile.architecture:
        return None
    return (
        f"{machine.name} is an {machine.architecture} machine, image {profile.name!r} is for {profile.architecture}"
        " - use a type or an image of the other kind"
    )


def _check_base(wishes: ClusterWishes, region: str, base: BaseSpec | None) -> Iterator[Finding]:
    if base and base.region != region and {region, base.region} <= set(regions()):
        yield Finding(
            ("aws:region",),
            f"{region!r} is not the region of base {base.name!r} - use {base.region!r}, or another base",
        )


def _check_head(head: HeadSpec, region: str, base: BaseSpec | None) -> Iterator[Finding]:
    yield from rules_queues.check_type(("head", "instance_type"), head.instance_type)
    if head.zone:
        yield from rules_names.check_base_zone(("head", "zone"), head.zone, region, base)
    if base and head.address and head.address not in base.network.cidr:
        yield Finding(
            ("head", "address"), f"{head.address} is outside the VPC of base {base.name!r} - it has {base.network.cidr}"
        )


def _check_image(image: ImageSpec) -> Iterator[Finding]:
    if {"profile", "id"} <= image.model_fields_set and image.id is not None:
        yield Finding(("image",), "has both profile and id - give one of them")
    if image.id is not None and not _IMAGE_ID.fullmatch(image.id):
        yield Finding(("image", "id"), f"{image.id!r} is not an image id - it looks like ami-0123456789abcdef0")
    profile = image_profiles().get(image.profile)
    known = [name for name, row in image_profiles().items() if not row.box]
    if profile is None:
        yield Finding(
            ("image", "profile"), f"{image.profile!r} is not in the catalogue - {suggestion(image.profile, known)}"
        )
    elif profile.box:
        yield Finding(
            ("image", "profile"), f"{image.profile!r} exists in the box alone, which takes it by itself - leave it out"
        )


def _check_architectures(wishes: ClusterWishes) -> Iterator[Finding]:
    profile = image_profiles().get(wishes.image.profile)
    places: list[tuple[Loc, str]] = [(("head", "instance_type"), wishes.head.instance_type)]
    places += [(("queues", n, "instance_type"), queue.instance_type) for n, queue in enumerate(wishes.queues)]
    for loc, name in places:
        machine = instance_types().get(name)
        if machine and profile and (message := architecture_problem(machine, profile)):
            yield Finding(loc, message)


def _check_lifetime(lifetime: LifetimeSpec) -> Iterator[Finding]:
    ttl, idle = lifetime.ttl, lifetime.idle
    if ttl is not None and ttl > _LONGEST_TTL:
        yield Finding(("lifetime", "ttl"), f"{format_duration(ttl)} is too long - use 30d or less, or leave it out")
    if ttl is not None and ttl < _SHORTEST_TTL:
        yield Finding(("lifetime", "ttl"), f"{format_duration(ttl)} is too short to boot in - use 30m or more")
    if idle is not None and idle < _SHORTEST_IDLE:
        yield Finding(("lifetime", "idle"), f"{format_duration(idle)} is too short to boot in - use 10m or more")
    if ttl is not None and idle is not None and idle >= ttl:
        yield Finding(
            ("lifetime", "idle"),
            f"{format_duration(idle)} is not shorter than ttl {format_duration(ttl)} - it would never take effect",
        )
