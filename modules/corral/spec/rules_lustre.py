"""Rules about Lustre file systems: sizes, mounts, links to S3."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from corral.catalog.lustre import LustreDeployment, lustre_choices, metadata_iops
from corral.catalog.names import suggestion
from corral.spec import rules_names
from corral.spec.base import NetworkSpec
from corral.spec.errors import Finding, Loc
from corral.spec.lustre import DataLinkSpec, LustreSpec, RootSquashSpec
from corral.spec.surroundings import Surroundings

_PATH = re.compile(r"/|(/[A-Za-z0-9_][A-Za-z0-9._-]*)+")
_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
_IDS = re.compile(r"\d{1,10}:\d{1,10}")
# Addresses with ranges in brackets, as FSx takes them (LustreRootSquashConfiguration, NoSquashNids).
_NID = re.compile(r"(\d{1,3}|\[\d{1,3}-\d{1,3}\])(\.(\d{1,3}|\[\d{1,3}-\d{1,3}\])){3}@tcp\d?")
_LOC: Loc = ("storage", "lustre")
# What belongs to the system, to corral, or to another file system of ours (/home).
_SYSTEM = ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "root", "run", "sbin", "sys", "usr")
_RESERVED = tuple(PurePosixPath(f"/{name}") for name in (*_SYSTEM, "home", "opt", "snap", "tmp", "var"))


def check(systems: Sequence[LustreSpec], around: Surroundings) -> Iterator[Finding]:
    """What is wrong with these file systems of a cluster."""
    for number, system in enumerate(systems):
        yield from _check_system((*_LOC, number), system)
        if system.zone:
            yield from rules_names.check_base_zone((*_LOC, number, "zone"), system.zone, around)
    yield from _check_together(systems)
    kept = around.base.storage.lustre if around.base else ()
    for number, system in enumerate(systems):
        yield from _check_beside((*_LOC, number), system, kept)


def check_kept(systems: Sequence[LustreSpec], network: NetworkSpec, around: Surroundings) -> Iterator[Finding]:
    """What is wrong with these file systems of a base, which are kept."""
    for number, system in enumerate(systems):
        yield from _check_system((*_LOC, number), system)
        if system.deployment.startswith("SCRATCH"):
            yield Finding(
                (*_LOC, number, "deployment"),
                f"{system.deployment!r} loses files when a server fails, and what a base declares is kept"
                " - use PERSISTENT_2, or declare it in the cluster",
            )
        if system.zone and system.zone not in network.zone_names:
            there = ", ".join(network.zone_names)
            yield Finding((*_LOC, number, "zone"), f"{system.zone!r} is not a zone of this base - it has {there}")
    yield from _check_together(systems)


def _check_together(systems: Sequence[LustreSpec]) -> Iterator[Finding]:
    yield from rules_names.check_unique([system.name for system in systems], _LOC, "name", "name")
    for number, system in enumerate(systems):
        for earlier, other in enumerate(systems[:number]):
            if system.name != other.name and overlap(system.mount_point, other.mount_point):
                mounts = f"{system.mount_point!r} overlaps {other.mount_point!r} of entry {earlier}"
                yield Finding((*_LOC, number, "mount"), f"{mounts} - mount them side by side")
                break


def _check_beside(loc: Loc, system: LustreSpec, kept: Sequence[LustreSpec]) -> Iterator[Finding]:
    """Against what the base keeps, which every cluster on it mounts."""
    for other in kept:
        if system.name == other.name:
            yield Finding((*loc, "name"), f"{system.name!r} is a file system that the base keeps - use another name")
        elif overlap(system.mount_point, other.mount_point):
            mounts = f"{system.mount_point!r} overlaps {other.mount_point!r} of the base's {other.name!r}"
            yield Finding((*loc, "mount"), f"{mounts} - mount them side by side")


def _check_system(loc: Loc, system: LustreSpec) -> Iterator[Finding]:
    yield from rules_names.check_name((*loc, "name"), system.name)
    yield from _check_deployment(loc, system)
    yield from _check_mount(loc, system)
    if system.backups and system.backups.at and not _TIME.fullmatch(system.backups.at):
        yield Finding((*loc, "backups", "at"), f"{system.backups.at!r} is not a time of day - write it like 04:30")
    if system.root_squash:
        yield from _check_squash((*loc, "root_squash"), system.root_squash)
    for number, link in enumerate(system.data):
        yield from _check_link((*loc, "data", number), link)
        yield from _check_apart((*loc, "data", number), link, system.data[:number])


def _check_deployment(loc: Loc, system: LustreSpec) -> Iterator[Finding]:
    rows = [row for row in lustre_choices() if row.deployment_type == system.deployment]
    if not rows:
        known = sorted({row.deployment_type for row in lustre_choices()})
        message = f"{system.deployment!r} is not in the catalogue - {suggestion(system.deployment, known)}"
        yield Finding((*loc, "deployment"), message)
        return
    stored = [row for row in rows if row.storage == system.disks]
    if not stored:
        yield Finding((*loc, "disks"), f"{system.deployment} is not stored on {system.disks} - use {rows[0].storage}")
        return
    yield from _check_throughput((*loc, "throughput"), system, stored)
    row = next((row for row in stored if row.throughput_mbps_per_tib == system.throughput), None)
    if row:
        yield from _check_features(loc, system, row)
        yield from _check_size(loc, system, row)


def _check_throughput(loc: Loc, system: LustreSpec, rows: Sequence[LustreDeployment]) -> Iterator[Finding]:
    known = [row.throughput_mbps_per_tib for row in rows]
    if system.throughput in known:
        return
    there = ", ".join(str(figure) for figure in known)
    what = f"{system.deployment} on {system.disks}"
    if known == [None]:
        yield Finding(loc, f"cannot be chosen with {system.deployment} - leave it out")
    elif system.throughput is None:
        yield Finding(loc, f"is missing - {what} comes with {there} MB/s for each TiB")
    else:
        yield Finding(loc, f"{system.throughput} cannot be had - {what} comes with {there} MB/s for each TiB")


def _check_features(loc: Loc, system: LustreSpec, row: LustreDeployment) -> Iterator[Finding]:
    wanted = {
        "drive_cache": (system.drive_cache, row.drive_cache, "is for HDDs"),
        "efa": (system.efa, row.efa_step_gib is not None, "is for PERSISTENT_2"),
        "metadata_iops": (system.metadata_iops is not None, row.metadata, "is for PERSISTENT_2"),
        "backups": (system.backups is not None, row.backups, "is for persistent file systems"),
    }
    for field, (is_wanted, is_there, whose) in wanted.items():
        if is_wanted and not is_there:
            yield Finding((*loc, field), f"{whose}, this one is {row.name} - leave it out")
    if row.metadata and system.metadata_iops is not None and system.metadata_iops not in metadata_iops().provisioned:
        known = metadata_iops().provisioned
        near = min(known, key=lambda figure: abs(figure - (system.metadata_iops or 0)))
        yield Finding((*loc, "metadata_iops"), f"{system.metadata_iops} cannot be had - the nearest is {near}")
    if len(system.data) > row.data_links_maximum:
        message = f"has {len(system.data)} entries - FSx links at most {row.data_links_maximum} a file system"
        yield Finding((*loc, "data"), message)


def _check_size(loc: Loc, system: LustreSpec, row: LustreDeployment) -> Iterator[Finding]:
    efa = system.efa and row.efa_step_gib is not None
    if not row.allows(system.size_gib, efa=efa):
        smallest, step = row.steps(efa=efa)
        near = " or ".join(str(size) for size in row.nearest_sizes(system.size_gib, efa=efa))
        what = f"{row.name} with EFA" if efa else row.name
        sizes = f"multiples of {step} GiB" if smallest == step else f"{smallest} GiB and multiples of {step}"
        yield Finding((*loc, "size_gib"), f"{system.size_gib} is not a size of {what}, which has {sizes} - use {near}")


def _check_squash(loc: Loc, squash: RootSquashSpec) -> Iterator[Finding]:
    if not _IDS.fullmatch(squash.to):
        yield Finding((*loc, "to"), f"{squash.to!r} is not a user and a group id - write it like 65534:65534")
    for number, nid in enumerate(squash.trusted):
        if not _NID.fullmatch(nid):
            message = f"{nid!r} is not a Lustre NID - write it like 10.64.0.10@tcp or 10.64.0.[10-20]@tcp"
            yield Finding((*loc, "trusted", number), message)


def _check_mount(loc: Loc, system: LustreSpec) -> Iterator[Finding]:
    mount = system.mount_point
    if system.mount and (message := directory_problem(mount)):
        yield Finding((*loc, "mount"), message)
    elif not system.mount and _PATH.fullmatch(mount) and (message := directory_problem(mount)):
        yield Finding((*loc, "name"), message.replace("use another one", "set mount, or use another name"))


def directory_problem(mount: str) -> str | None:
    """Why nothing can be mounted on this directory; None where it can."""
    if not _PATH.fullmatch(mount) or mount == "/":
        return f"{mount!r} is not a directory to mount on - write it like /scratch"
    path = PurePosixPath(mount)
    taken = next((reserved for reserved in _RESERVED if path == reserved or reserved in path.parents), None)
    if taken is None:
        return None
    return f"{mount!r} would hide {taken}, which belongs to the machine - use another one"


def _check_link(loc: Loc, link: DataLinkSpec) -> Iterator[Finding]:
    if not _PATH.fullmatch(link.path):
        yield Finding((*loc, "path"), f"{link.path!r} is not a directory of the file system - write it like /data")
    if message := rules_names.s3_problem(link.s3):
        yield Finding((*loc, "s3"), message)
    for key, events in (("import", link.imports), ("export", link.exports)):
        for number, event in enumerate(events):
            if event in events[:number]:
                yield Finding((*loc, key, number), f"{event!r} is listed twice - keep one")


def _check_apart(loc: Loc, link: DataLinkSpec, earlier: Sequence[DataLinkSpec]) -> Iterator[Finding]:
    """FSx refuses links whose directories overlap, and two links to one place in S3."""
    for number, other in enumerate(earlier):
        if overlap(link.path, other.path):
            yield Finding(
                (*loc, "path"),
                f"{link.path!r} overlaps {other.path!r} of entry {number} - link directories side by side",
            )
        if link.s3.rstrip("/") == other.s3.rstrip("/"):
            yield Finding((*loc, "s3"), f"{link.s3!r} is linked by entry {number} already - link each place once")


def overlap(one: str, other: str) -> bool:
    """True if one of the two directories is the other, or in it."""
    first, second = PurePosixPath(one), PurePosixPath(other)
    return first == second or first in second.parents or second in first.parents
