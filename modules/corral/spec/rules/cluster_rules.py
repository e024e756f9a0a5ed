"""Rules about a cluster, beyond the types of its fields: its base, head, image and lifetime."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta

from corral.catalog.accelerators.kernel_modules import KernelModules, gpu_architecture
from corral.catalog.aws.images import ImageProfile, image_profiles
from corral.catalog.aws.instance_types import InstanceType, Vendor
from corral.catalog.aws.regions import regions
from corral.catalog.loader.suggestions import suggestion
from corral.catalog.slurm.releases import RELEASES, Release, parse_release, release_text
from corral.spec.models.base import BaseSpec
from corral.spec.models.cluster import ClusterSpecInput, HeadSpec, LifetimeSpec
from corral.spec.models.durations import format_duration
from corral.spec.models.image import ImageSpec, release_problem, resolve_image
from corral.spec.rules import (
    access_rules,
    account_rules,
    directory_rules,
    hook_rules,
    job_rules,
    login_rules,
    lustre_rules,
    monitoring_rules,
    name_rules,
    queue_rules,
    slurm_rules,
    tag_rules,
)
from corral.spec.rules.lustre_rules import directory_problem, overlap
from corral.spec.spec_errors import Loc, SpecFinding, SpecProblem
from corral.spec.validation_context import ValidationContext

_IMAGE_ID = re.compile(r"ami-([0-9a-f]{8}|[0-9a-f]{17})")
LONGEST_TTL = timedelta(days=183)  # a Capacity Block lasts at most 182, and the head starts before it begins
_SHORTEST_TTL = timedelta(minutes=30)  # head and first node take ten to boot
_SHORTEST_IDLE = timedelta(minutes=10)  # a cluster that has just booted is idle, too


def check(spec: ClusterSpecInput, context: ValidationContext) -> Iterator[SpecFinding]:
    """Yield findings about this cluster, its region, and its base if known."""
    yield from _check_base(context)
    yield from _check_head(spec.head, context)
    yield from login_rules.check(spec, context)
    yield from _check_image(("image",), spec.image)
    yield from _check_images_of_queues(spec)
    yield from _check_machines(spec, context)
    yield from _check_efa(spec, context)
    yield from _check_lustre_client(spec, context)
    yield from _check_roots(spec)
    yield from lustre_rules.check(spec.storage.lustre, context)
    yield from queue_rules.check(spec.queues, context)
    yield from _check_disks(spec, context)
    yield from queue_rules.check_time_limits(spec.queues, spec.lifetime)
    yield from job_rules.check(spec.jobs, context.region)
    yield from slurm_rules.check(spec)
    yield from hook_rules.check(spec)
    yield from access_rules.check(spec.access)
    yield from directory_rules.check(spec, context)
    yield from account_rules.check(spec)
    yield from _check_lifetime(spec.lifetime)
    yield from monitoring_rules.check(spec.monitoring, context.region)
    yield from tag_rules.check(spec.tags)


def image_problem(machine: InstanceType, profile: ImageProfile, *, own: bool = False) -> SpecProblem | None:
    """Return why this instance type cannot boot or fully use an image of this profile; None if it can.

    `own`: the image is the user's, and the profile describes it.
    """
    if machine.architecture != profile.architecture:
        image = f"image {profile.name!r} is for {profile.architecture}"
        return SpecProblem(
            f"{machine.name} is an {machine.architecture} machine, {image}", "use a matching type or image"
        )
    if machine.accelerator is None:
        return None
    product, vendor = machine.accelerator.product, machine.accelerator.vendor
    if vendor in profile.drivers:
        return _kernel_modules_problem(machine.name, product, profile.kernel_modules)
    fitting = _fitting_profiles(lambda row: vendor in row.drivers)
    fix = f"use the image {fitting}{', the profile to set with the id of your own image' if own else ''}"
    if vendor is Vendor.NVIDIA and not profile.drivers:
        fix = f"use the image {fitting}, or set `kernel_modules` with the id of your own image that has the driver"
    return SpecProblem(f"{machine.name} has {product}, for which image {profile.name!r} has no driver", fix)


def _fitting_profiles(fits: Callable[[ImageProfile], bool]) -> str:
    """Return the fitting profiles that a spec may name, as text."""
    return " or ".join(row.name for row in image_profiles().values() if fits(row) and not row.box)


def _kernel_modules_problem(name: str, product: str, flavour: KernelModules | None) -> SpecProblem | None:
    architecture = gpu_architecture(product)
    if architecture is None or flavour is None or flavour in architecture.flavours:
        return None
    return SpecProblem(
        f"{name} has {product} ({architecture.name}), and the image has NVIDIA's {flavour} kernel modules, which do not"
        " support it",
        f"use another type, or set `kernel_modules: {architecture.flavours[0]}` with the id of your own image that has"
        " them",
    )


def _check_base(context: ValidationContext) -> Iterator[SpecFinding]:
    base, region = context.base, context.region
    if base and base.region != region and {region, base.region} <= set(regions()):
        yield SpecFinding(
            ("aws:region",),
            f"{region!r} is not the region of base {base.name!r}",
            f"use {base.region!r}, or another base",
        )


def _check_head(head: HeadSpec, context: ValidationContext) -> Iterator[SpecFinding]:
    yield from queue_rules.check_type(("head", "instance_type"), head.instance_type, context)
    if head.zone:
        yield from name_rules.check_base_zone(("head", "zone"), head.zone, context)
    if context.base:
        yield from _check_address(head, context.base)


def _check_address(head: HeadSpec, base: BaseSpec) -> Iterator[SpecFinding]:
    loc: Loc = ("head", "address")
    if base.network.adopt is None:
        if head.address and head.address not in base.network.cidr:
            what = f"{head.address} is outside the VPC of base {base.name!r}"
            yield SpecFinding(loc, what, f"it has {base.network.cidr}")
        return
    zone = head.zone or base.network.zone_names[0]
    subnet = next((subnet for subnet in base.network.adopt.subnets if subnet.zone == zone), None)
    if subnet and head.address is None:
        yield SpecFinding(loc, "is missing", f"adopted subnets reserve no address; use a free one of {subnet.cidr}")
    elif subnet and head.address not in subnet.cidr:
        yield SpecFinding(loc, f"{head.address} is outside {subnet.id} in {zone}", f"it has {subnet.cidr}")


def _check_image(loc: Loc, image: ImageSpec) -> Iterator[SpecFinding]:
    if image.id is not None and not _IMAGE_ID.fullmatch(image.id):
        yield SpecFinding((*loc, "id"), f"{image.id!r} is not an image id", "write it like ami-0123456789abcdef0")
    if image.slurm is not None and image.id is None:
        yield SpecFinding((*loc, "slurm"), "requires an image of your own", "set its id, or remove it")
    if image.kernel_modules is not None and image.id is None:
        yield SpecFinding((*loc, "kernel_modules"), "requires an image of your own", "set its id, or remove it")
    if image.slurm is not None and (problem := release_problem(image.slurm)):
        yield problem.at((*loc, "slurm"))
    profile = image_profiles().get(image.profile)
    known = [name for name, row in image_profiles().items() if not row.box]
    if profile is None:
        yield SpecFinding(
            (*loc, "profile"), f"{image.profile!r} is not in the catalog", suggestion(image.profile, known)
        )
    elif profile.box:
        yield SpecFinding(
            (*loc, "profile"), f"{image.profile!r} exists only in the box, which selects it itself", "remove it"
        )


def _check_images_of_queues(spec: ClusterSpecInput) -> Iterator[SpecFinding]:
    """Yield images whose Slurm cannot join the head's: slurmctld accepts nodes of its own and some older releases."""
    head = resolve_image(spec.image)
    for number, queue in enumerate(spec.queues):
        if queue.image is None:
            continue
        loc: Loc = ("queues", number, "image")
        yield from _check_image(loc, queue.image)
        own = resolve_image(queue.image)
        if head and own and (limit := _mismatch(parse_release(own.slurm_version), parse_release(head.slurm_version))):
            yield SpecFinding(loc, f"{own.name!r} has Slurm {own.slurm_version}, the head {head.slurm_version}", limit)


def _mismatch(node: Release, head: Release) -> str | None:
    """Return why a head of one release cannot have nodes of the other; None if it can, or if that is unknown.

    Source: Slurm, Upgrade Guide, Compatibility Window: three releases back from 24.11 on, two before.
    """
    if node > head:
        return f"nodes cannot be newer; give the cluster an image with Slurm {release_text(node)} or later"
    back = 3 if head >= (24, 11) else 2
    oldest = RELEASES[max(0, RELEASES.index(head) - back)] if head in RELEASES else node
    if node < oldest:
        return f"nodes can be at most {back} releases older; use {release_text(oldest)} or later"
    return None


def _check_machines(spec: ClusterSpecInput, context: ValidationContext) -> Iterator[SpecFinding]:
    locs: list[tuple[Loc, str, ImageSpec]] = [(("head", "instance_type"), spec.head.instance_type, spec.image)]
    if spec.login:
        locs.append((("login", "instance_type"), spec.login.instance_type, spec.image))
    for n, queue in enumerate(spec.queues):
        image = queue.image or spec.image
        locs.append((("queues", n, "instance_type"), queue.instance_type, image))
    for loc, name, image in locs:
        machine, profile = context.catalog.instance_types.get(name), resolve_image(image)
        if machine and profile and (problem := image_problem(machine, profile, own=image.id is not None)):
            yield problem.at(loc)


def _check_efa(spec: ClusterSpecInput, context: ValidationContext) -> Iterator[SpecFinding]:
    """Yield queues with EFA on an image without its driver. Only users know what their own images have."""
    for number, queue in enumerate(spec.queues):
        image = queue.image or spec.image
        machine, profile = context.catalog.instance_types.get(queue.instance_type), resolve_image(image)
        if image.id or machine is None or profile is None or profile.efa:
            continue
        if machine.efa_maximum and queue.efa != "off" and image_problem(machine, profile) is None:
            yield SpecFinding(
                ("queues", number, "efa"),
                f"{queue.efa!r}, but {machine.name} has EFA, for which image {profile.name!r} has no driver",
                f"set 'off', or use the image {_fitting_profiles(lambda row: row.efa)}, or an image of your own"
                " with the driver",
            )


def _check_lustre_client(spec: ClusterSpecInput, context: ValidationContext) -> Iterator[SpecFinding]:
    """Yield images without a Lustre client, if any file system is mounted: every machine mounts all of them."""
    kept = context.base.storage.lustre if context.base else ()
    mounted = next(iter((*spec.storage.lustre, *kept)), None)
    locs: list[tuple[Loc, ImageSpec | None]] = [(("image", "profile"), spec.image)]
    locs += [(("queues", number, "image", "profile"), queue.image) for number, queue in enumerate(spec.queues)]
    for loc, image in locs:
        profile = image_profiles().get(image.profile) if mounted and image and image.id is None else None
        if mounted and profile and not profile.box and not profile.lustre_archive:
            yield SpecFinding(
                loc,
                f"{profile.name!r} has no Lustre client, and every machine mounts Lustre {mounted.name!r}",
                f"use {_fitting_profiles(lambda row: bool(row.lustre_archive))}, or an image of your own"
                " that has a client",
            )


def _check_roots(spec: ClusterSpecInput) -> Iterator[SpecFinding]:
    """Yield root volumes smaller than their image. Only AWS knows the size of a user's own image."""
    locs: list[tuple[Loc, int, ImageSpec]] = [(("head", "root_gib"), spec.head.root_gib, spec.image)]
    if spec.login:
        locs.append((("login", "root_gib"), spec.login.root_gib, spec.image))
    for number, queue in enumerate(spec.queues):
        locs.append((("queues", number, "root_gib"), queue.root_gib, queue.image or spec.image))
    for loc, size, image in locs:
        profile = image_profiles().get(image.profile)
        if image.id is None and profile and size < profile.snapshot_gib:
            least = profile.snapshot_gib
            message = f"{size} is smaller than image {profile.name!r}, which takes {least} GiB"
            yield SpecFinding(loc, message, f"use {least} or more")


def _check_disks(spec: ClusterSpecInput, context: ValidationContext) -> Iterator[SpecFinding]:
    """Yield mount points of local disks that overlap those of shared file systems."""
    kept = context.base.storage.lustre if context.base else ()
    shared = (*spec.storage.lustre, *kept)
    for number, queue in enumerate(spec.queues):
        machine = context.catalog.instance_types.get(queue.instance_type)
        if queue.nvme == "off" or machine is None or not machine.nvme_count:
            continue
        for system in shared:
            if not directory_problem(system.mount_point) and overlap(queue.nvme, system.mount_point):
                message = f"{queue.nvme!r} overlaps {system.mount_point!r} of Lustre {system.name!r}"
                yield SpecFinding(("queues", number, "nvme"), message, "use separate directories")


def _check_lifetime(lifetime: LifetimeSpec) -> Iterator[SpecFinding]:
    ttl, idle = lifetime.ttl, lifetime.idle
    if ttl is not None and ttl > LONGEST_TTL:
        yield SpecFinding(("lifetime", "ttl"), f"{format_duration(ttl)} is too long", "use 183d or less, or remove it")
    if ttl is not None and ttl < _SHORTEST_TTL:
        yield SpecFinding(("lifetime", "ttl"), f"{format_duration(ttl)} is too short for a boot", "use 30m or more")
    if idle is not None and idle < _SHORTEST_IDLE:
        yield SpecFinding(("lifetime", "idle"), f"{format_duration(idle)} is too short for a boot", "use 10m or more")
    if ttl is not None and idle is not None and idle >= ttl:
        yield SpecFinding(
            ("lifetime", "idle"),
            f"{format_duration(idle)} is not shorter than ttl {format_duration(ttl)} and never takes effect",
            "use less",
        )
