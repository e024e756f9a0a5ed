"""Rules about a cluster, beyond the shape of its fields: its base, head, image and lifetime."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from corral.catalog.images import ImageProfile, image_profiles
from corral.catalog.instances import InstanceType
from corral.catalog.names import suggestion
from corral.catalog.regions import regions
from corral.catalog.slurm_releases import RELEASES, Release, parse_release
from corral.spec import rules_access, rules_jobs, rules_lustre, rules_names, rules_queues, rules_slurm, rules_tags
from corral.spec.base import BaseSpec
from corral.spec.cluster import ClusterWishes, HeadSpec, LifetimeSpec
from corral.spec.durations import format_duration
from corral.spec.errors import Finding, Loc
from corral.spec.image import ImageSpec, known_image, release_problem
from corral.spec.rules_lustre import directory_problem, overlap
from corral.spec.surroundings import Surroundings

_IMAGE_ID = re.compile(r"ami-([0-9a-f]{8}|[0-9a-f]{17})")
LONGEST_TTL = timedelta(days=183)  # a Capacity Block lasts 182 at most, and the head is up before it begins
_SHORTEST_TTL = timedelta(minutes=30)  # head and first node alone take ten to boot
_SHORTEST_IDLE = timedelta(minutes=10)  # a cluster that has just come up is idle, too


def check(wishes: ClusterWishes, around: Surroundings) -> Iterator[Finding]:
    """What is wrong with this cluster in its region, and on its base where it is known."""
    yield from _check_base(around)
    yield from _check_head(wishes.head, around)
    yield from _check_image(("image",), wishes.image)
    yield from _check_images_of_queues(wishes)
    yield from _check_machines(wishes, around)
    yield from _check_roots(wishes)
    yield from rules_lustre.check(wishes.storage.lustre, around)
    yield from rules_queues.check(wishes.queues, around)
    yield from _check_disks(wishes, around)
    yield from rules_queues.check_time_limits(wishes.queues, wishes.lifetime)
    yield from rules_jobs.check(wishes.jobs)
    yield from rules_slurm.check(wishes)
    yield from rules_access.check(wishes.access)
    yield from _check_lifetime(wishes.lifetime)
    yield from rules_tags.check(wishes.tags)


def image_problem(machine: InstanceType, profile: ImageProfile) -> str | None:
    """Why a machine of this type cannot boot an image of this profile, or not use all it has; None where it can."""
    if machine.architecture != profile.architecture:
        return (
            f"{machine.name} is an {machine.architecture} machine, image {profile.name!r} is for {profile.architecture}"
            " - use a type or an image of the other kind"
        )
    if machine.accelerator is None or machine.accelerator.vendor in profile.drivers:
        return None
    vendor = machine.accelerator.vendor
    fitting = [row.name for row in image_profiles().values() if vendor in row.drivers and not row.box]
    return (
        f"{machine.name} has {machine.accelerator.product}, for which image {profile.name!r} has no driver"
        f" - use the image {' or '.join(fitting)}"
    )


def _check_base(around: Surroundings) -> Iterator[Finding]:
    base, region = around.base, around.region
    if base and base.region != region and {region, base.region} <= set(regions()):
        yield Finding(
            ("aws:region",),
            f"{region!r} is not the region of base {base.name!r} - use {base.region!r}, or another base",
        )


def _check_head(head: HeadSpec, around: Surroundings) -> Iterator[Finding]:
    yield from rules_queues.check_type(("head", "instance_type"), head.instance_type, around)
    if head.zone:
        yield from rules_names.check_base_zone(("head", "zone"), head.zone, around)
    if around.base:
        yield from _check_address(head, around.base)


def _check_address(head: HeadSpec, base: BaseSpec) -> Iterator[Finding]:
    loc: Loc = ("head", "address")
    if base.network.adopt is None:
        if head.address and head.address not in base.network.cidr:
            vpc = f"the VPC of base {base.name!r} - it has {base.network.cidr}"
            yield Finding(loc, f"{head.address} is outside {vpc}")
        return
    zone = head.zone or base.network.zone_names[0]
    subnet = next((subnet for subnet in base.network.adopt.subnets if subnet.zone == zone), None)
    if subnet and head.address is None:
        yield Finding(loc, f"is missing - in an adopted subnet none is kept: give a free one of {subnet.cidr}")
    elif subnet and head.address not in subnet.cidr:
        yield Finding(loc, f"{head.address} is outside {subnet.id} in {zone} - it has {subnet.cidr}")


def _check_image(loc: Loc, image: ImageSpec) -> Iterator[Finding]:
    if image.id is not None and not _IMAGE_ID.fullmatch(image.id):
        yield Finding((*loc, "id"), f"{image.id!r} is not an image id - it looks like ami-0123456789abcdef0")
    if image.slurm is not None and image.id is None:
        yield Finding((*loc, "slurm"), "is for an image of your own - give its id, too, or leave it out")
    if image.slurm is not None and (message := release_problem(image.slurm)):
        yield Finding((*loc, "slurm"), message)
    profile = image_profiles().get(image.profile)
    known = [name for name, row in image_profiles().items() if not row.box]
    if profile is None:
        yield Finding(
            (*loc, "profile"), f"{image.profile!r} is not in the catalogue - {suggestion(image.profile, known)}"
        )
    elif profile.box:
        yield Finding(
            (*loc, "profile"), f"{image.profile!r} exists in the box alone, which takes it by itself - leave it out"
        )


def _check_images_of_queues(wishes: ClusterWishes) -> Iterator[Finding]:
    """One Slurm speaks to all nodes: slurmctld takes nodes of its own release and of some older ones."""
    head = known_image(wishes.image)
    for number, queue in enumerate(wishes.queues):
        if queue.image is None:
            continue
        loc: Loc = ("queues", number, "image")
        yield from _check_image(loc, queue.image)
        own = known_image(queue.image)
        if head and own and (message := _mismatch(parse_release(own.slurm_version), parse_release(head.slurm_version))):
            yield Finding(loc, f"{own.name!r} has Slurm {own.slurm_version}, the head {head.slurm_version} - {message}")


def _mismatch(node: Release, head: Release) -> str | None:
    """Why a slurmctld of the one release cannot have nodes of the other; None where it can, or where nobody knows.

    Source: Slurm, Upgrade Guide, Compatibility Window: from 24.11 three releases back, two before.
    """
    if node > head:
        return "nodes cannot be newer"
    back = 3 if head >= (24, 11) else 2
    if head in RELEASES and node < RELEASES[max(0, RELEASES.index(head) - back)]:
        return f"nodes can be {back} releases older, not more"
    return None


def _check_machines(wishes: ClusterWishes, around: Surroundings) -> Iterator[Finding]:
    places: list[tuple[Loc, str, ImageSpec]] = [(("head", "instance_type"), wishes.head.instance_type, wishes.image)]
    for n, queue in enumerate(wishes.queues):
        image = queue.image or wishes.image
        places.append((("queues", n, "instance_type"), queue.instance_type, image))
    for loc, name, image in places:
        machine, profile = around.catalogue.instance_types.get(name), image_profiles().get(image.profile)
        if machine and profile and (message := image_problem(machine, profile)):
            own = ", as the profile beside the id of an image of your own that has one" if image.id else ""
            yield Finding(loc, f"{message}{own}")


def _check_roots(wishes: ClusterWishes) -> Iterator[Finding]:
    """The root volumes that are smaller than their image. How large an image of one's own is, its account knows."""
    places: list[tuple[Loc, int, ImageSpec]] = [(("head", "root_gib"), wishes.head.root_gib, wishes.image)]
    for number, queue in enumerate(wishes.queues):
        places.append((("queues", number, "root_gib"), queue.root_gib, queue.image or wishes.image))
    for loc, size, image in places:
        profile = image_profiles().get(image.profile)
        if image.id is None and profile and size < profile.snapshot_gib:
            least = profile.snapshot_gib
            message = f"{size} is smaller than image {profile.name!r}, which takes {least} GiB"
            yield Finding(loc, f"{message} - use {least} or more")


def _check_disks(wishes: ClusterWishes, around: Surroundings) -> Iterator[Finding]:
    """The nodes' own disks beside the file systems that all machines mount."""
    kept = around.base.storage.lustre if around.base else ()
    shared = (*wishes.storage.lustre, *kept)
    for number, queue in enumerate(wishes.queues):
        machine = around.catalogue.instance_types.get(queue.instance_type)
        if queue.nvme == "off" or machine is None or not machine.nvme_count:
            continue
        for system in shared:
            if not directory_problem(system.mount_point) and overlap(queue.nvme, system.mount_point):
                message = f"{queue.nvme!r} overlaps {system.mount_point!r} of Lustre {system.name!r}"
                yield Finding(("queues", number, "nvme"), f"{message} - mount them side by side")


def _check_lifetime(lifetime: LifetimeSpec) -> Iterator[Finding]:
    ttl, idle = lifetime.ttl, lifetime.idle
    if ttl is not None and ttl > LONGEST_TTL:
        yield Finding(("lifetime", "ttl"), f"{format_duration(ttl)} is too long - use 183d or less, or leave it out")
    if ttl is not None and ttl < _SHORTEST_TTL:
        yield Finding(("lifetime", "ttl"), f"{format_duration(ttl)} is too short to boot in - use 30m or more")
    if idle is not None and idle < _SHORTEST_IDLE:
        yield Finding(("lifetime", "idle"), f"{format_duration(idle)} is too short to boot in - use 10m or more")
    if ttl is not None and idle is not None and idle >= ttl:
        yield Finding(
            ("lifetime", "idle"),
            f"{format_duration(idle)} is not shorter than ttl {format_duration(ttl)} - it would never take effect",
        )
