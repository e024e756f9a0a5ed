"""Rules about Lustre file systems: sizes, mounts, links to S3."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from corral.catalog.aws.lustre import LustreDeployment, lustre_choices, metadata_iops
from corral.catalog.loader.suggestions import suggestion
from corral.model.partitions import partition_of
from corral.spec.models.base import NetworkSpec
from corral.spec.models.lustre import DataLinkSpec, LustreSpec, RootSquashSpec
from corral.spec.rules import name_rules
from corral.spec.spec_errors import Loc, SpecFinding, SpecProblem
from corral.spec.validation_context import ValidationContext

_PATH = re.compile(r"/|(/[A-Za-z0-9_][A-Za-z0-9._-]*)+")
_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
_IDS = re.compile(r"\d{1,10}:\d{1,10}")
# Addresses with ranges in brackets, as FSx accepts them (LustreRootSquashConfiguration, NoSquashNids).
_NID = re.compile(r"(\d{1,3}|\[\d{1,3}-\d{1,3}\])(\.(\d{1,3}|\[\d{1,3}-\d{1,3}\])){3}@tcp\d?")
_LOC: Loc = ("storage", "lustre")
# Directories of the system, of corral, and of corral's other file system (/home).
_SYSTEM = ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "root", "run", "sbin", "sys", "usr")
_RESERVED = tuple(PurePosixPath(f"/{name}") for name in (*_SYSTEM, "home", "opt", "snap", "tmp", "var"))


def check(systems: Sequence[LustreSpec], context: ValidationContext) -> Iterator[SpecFinding]:
    """Yield findings about a cluster's file systems."""
    for number, system in enumerate(systems):
        yield from _check_system((*_LOC, number), system)
        if system.deployment.startswith("SCRATCH") and not has_scratch(context.region):
            message = f"{system.deployment!r} is not available in the China regions"
            yield SpecFinding((*_LOC, number, "deployment"), message, "use PERSISTENT_2")
        if system.zone:
            yield from name_rules.check_base_zone((*_LOC, number, "zone"), system.zone, context)
    yield from _check_unique(systems)
    kept = context.base.storage.lustre if context.base else ()
    for number, system in enumerate(systems):
        yield from _check_against_base((*_LOC, number), system, kept)


def has_scratch(region: str) -> bool:
    """Return whether the region has SCRATCH deployments.

    Source: Getting Started with Amazon Web Services in China, "Amazon FSx".
    """
    return partition_of(region).name != "aws-cn"


def check_kept(
    systems: Sequence[LustreSpec], network: NetworkSpec, context: ValidationContext
) -> Iterator[SpecFinding]:
    """Yield findings about a base's file systems, which are retained."""
    for number, system in enumerate(systems):
        yield from _check_system((*_LOC, number), system)
        if system.deployment.startswith("SCRATCH"):
            yield SpecFinding(
                (*_LOC, number, "deployment"),
                f"{system.deployment!r} loses files when a server fails, and a base retains its file systems",
                "use PERSISTENT_2, or declare it in the cluster",
            )
        if system.zone and system.zone not in network.zone_names:
            there = ", ".join(network.zone_names)
            yield SpecFinding((*_LOC, number, "zone"), f"{system.zone!r} is not a zone of this base", f"it has {there}")
    yield from _check_unique(systems)


def _check_unique(systems: Sequence[LustreSpec]) -> Iterator[SpecFinding]:
    yield from name_rules.check_unique([system.name for system in systems], _LOC, "name", "name")
    for number, system in enumerate(systems):
        for earlier, other in enumerate(systems[:number]):
            if system.name != other.name and overlap(system.mount_point, other.mount_point):
                mounts = f"{system.mount_point!r} overlaps {other.mount_point!r} of entry {earlier}"
                yield SpecFinding((*_LOC, number, "mount"), mounts, "use separate directories")
                break


def _check_against_base(loc: Loc, system: LustreSpec, kept: Sequence[LustreSpec]) -> Iterator[SpecFinding]:
    """Yield conflicts with the base's file systems, which every cluster on it mounts."""
    for other in kept:
        if system.name == other.name:
            yield SpecFinding((*loc, "name"), f"{system.name!r} is a file system of the base", "use another name")
        elif overlap(system.mount_point, other.mount_point):
            mounts = f"{system.mount_point!r} overlaps {other.mount_point!r} of the base's {other.name!r}"
            yield SpecFinding((*loc, "mount"), mounts, "use separate directories")


def _check_system(loc: Loc, system: LustreSpec) -> Iterator[SpecFinding]:
    yield from name_rules.check_name((*loc, "name"), system.name)
    yield from _check_deployment(loc, system)
    yield from _check_mount(loc, system)
    if system.backups and system.backups.at and not _TIME.fullmatch(system.backups.at):
        yield SpecFinding((*loc, "backups", "at"), f"{system.backups.at!r} is not a time of day", "write it like 04:30")
    if system.root_squash:
        yield from _check_squash((*loc, "root_squash"), system.root_squash)
    for number, link in enumerate(system.data):
        yield from _check_link((*loc, "data", number), link)
        yield from _check_link_overlap((*loc, "data", number), link, system.data[:number])


def _check_deployment(loc: Loc, system: LustreSpec) -> Iterator[SpecFinding]:
    rows = [row for row in lustre_choices() if row.deployment_type == system.deployment]
    if not rows:
        known = sorted({row.deployment_type for row in lustre_choices()})
        yield SpecFinding(
            (*loc, "deployment"),
            f"{system.deployment!r} is not in the catalog",
            suggestion(system.deployment, known),
        )
        return
    stored = [row for row in rows if row.storage == system.disks]
    if not stored:
        yield SpecFinding(
            (*loc, "disks"), f"{system.deployment} does not support {system.disks}", f"use {rows[0].storage}"
        )
        return
    yield from _check_throughput((*loc, "throughput"), system, stored)
    row = next((row for row in stored if row.throughput_mbps_per_tib == system.throughput), None)
    if row:
        yield from _check_features(loc, system, row)
        yield from _check_size(loc, system, row)


def _check_throughput(loc: Loc, system: LustreSpec, rows: Sequence[LustreDeployment]) -> Iterator[SpecFinding]:
    known = [row.throughput_mbps_per_tib for row in rows]
    if system.throughput in known:
        return
    there = ", ".join(str(figure) for figure in known)
    what = f"{system.deployment} on {system.disks}"
    if known == [None]:
        yield SpecFinding(loc, f"is fixed for {system.deployment}", "remove it")
    elif system.throughput is None:
        yield SpecFinding(loc, "is missing", f"{what} offers {there} MB/s for each TiB")
    else:
        yield SpecFinding(loc, f"{system.throughput} is not available", f"{what} offers {there} MB/s for each TiB")


def _check_features(loc: Loc, system: LustreSpec, row: LustreDeployment) -> Iterator[SpecFinding]:
    wanted = {
        "drive_cache": (system.drive_cache, row.drive_cache, "requires HDDs"),
        "efa": (system.efa, row.efa_step_gib is not None, "requires PERSISTENT_2"),
        "metadata_iops": (system.metadata_iops is not None, row.metadata, "requires PERSISTENT_2"),
        "backups": (system.backups is not None, row.backups, "requires a persistent deployment"),
    }
    for field, (is_wanted, is_there, whose) in wanted.items():
        if is_wanted and not is_there:
            yield SpecFinding((*loc, field), f"{whose}; this one is {row.name}", "remove it")
    if row.backups and system.backups and system.data:
        linked = "FSx takes no backups of a file system with links to S3"
        yield SpecFinding((*loc, "backups"), linked, "remove it or `data`")
    if row.metadata and system.metadata_iops is not None and system.metadata_iops not in metadata_iops().provisioned:
        known = metadata_iops().provisioned
        near = min(known, key=lambda figure: abs(figure - (system.metadata_iops or 0)))
        yield SpecFinding((*loc, "metadata_iops"), f"{system.metadata_iops} is not available", f"the nearest is {near}")
    if len(system.data) > row.data_links_maximum:
        yield SpecFinding(
            (*loc, "data"),
            f"has {len(system.data)} entries",
            f"FSx allows at most {row.data_links_maximum} a file system",
        )


def _check_size(loc: Loc, system: LustreSpec, row: LustreDeployment) -> Iterator[SpecFinding]:
    efa = system.efa and row.efa_step_gib is not None
    if not row.allows(system.size_gib, efa=efa):
        smallest, step = row.steps(efa=efa)
        near = " or ".join(str(size) for size in row.nearest_sizes(system.size_gib, efa=efa))
        what = f"{row.name} with EFA" if efa else row.name
        sizes = f"multiples of {step} GiB" if smallest == step else f"{smallest} GiB and multiples of {step}"
        yield SpecFinding(
            (*loc, "size_gib"), f"{system.size_gib} is not a size of {what}; valid sizes are {sizes}", f"use {near}"
        )


def _check_squash(loc: Loc, squash: RootSquashSpec) -> Iterator[SpecFinding]:
    if not _IDS.fullmatch(squash.to):
        yield SpecFinding((*loc, "to"), f"{squash.to!r} is not a user and group id", "write it like 65534:65534")
    for number, nid in enumerate(squash.trusted):
        if not _NID.fullmatch(nid):
            yield SpecFinding(
                (*loc, "trusted", number),
                f"{nid!r} is not a Lustre NID",
                "write it like 10.64.0.10@tcp or 10.64.0.[10-20]@tcp",
            )


def _check_mount(loc: Loc, system: LustreSpec) -> Iterator[SpecFinding]:
    mount = system.mount_point
    if system.mount and (problem := directory_problem(mount)):
        yield problem.at((*loc, "mount"))
    elif (
        not system.mount
        and _PATH.fullmatch(mount)
        and (problem := directory_problem(mount, fix="set mount, or use another name"))
    ):
        yield problem.at((*loc, "name"))


def directory_problem(mount: str, *, fix: str = "use another directory") -> SpecProblem | None:
    """Return why this directory cannot be a mount point; None if it can."""
    if not _PATH.fullmatch(mount) or mount == "/":
        return SpecProblem(f"{mount!r} is not an absolute directory", "write it like /scratch")
    path = PurePosixPath(mount)
    taken = next((reserved for reserved in _RESERVED if path == reserved or reserved in path.parents), None)
    if taken is None:
        return None
    return SpecProblem(f"{mount!r} would hide the system's {taken}", fix)


def _check_link(loc: Loc, link: DataLinkSpec) -> Iterator[SpecFinding]:
    if not _PATH.fullmatch(link.path):
        yield SpecFinding((*loc, "path"), f"{link.path!r} is not a directory of the file system", "write it like /data")
    if problem := name_rules.s3_problem(link.s3):
        yield problem.at((*loc, "s3"))
    for key, events in (("import", link.imports), ("export", link.exports)):
        for number, event in enumerate(events):
            if event in events[:number]:
                yield SpecFinding((*loc, key, number), f"{event!r} is listed twice", "keep one")


def _check_link_overlap(loc: Loc, link: DataLinkSpec, earlier: Sequence[DataLinkSpec]) -> Iterator[SpecFinding]:
    """Yield links that FSx rejects: overlapping directories, and two links to one S3 URL."""
    for number, other in enumerate(earlier):
        if overlap(link.path, other.path):
            yield SpecFinding(
                (*loc, "path"),
                f"{link.path!r} overlaps {other.path!r} of entry {number}",
                "link separate directories",
            )
        if link.s3.rstrip("/") == other.s3.rstrip("/"):
            yield SpecFinding((*loc, "s3"), f"{link.s3!r} is already linked by entry {number}", "link each S3 URL once")


def overlap(one: str, other: str) -> bool:
    """True if one of the two directories is the other, or in it."""
    first, second = PurePosixPath(one), PurePosixPath(other)
    return first == second or first in second.parents or second in first.parents
