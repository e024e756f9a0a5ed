"""Rules about Lustre file systems: sizes, mounts, links to S3."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from corral.catalog.lustre import LustreDeployment, lustre_deployments
from corral.catalog.names import suggestion
from corral.spec import rules_names
from corral.spec.base import BaseSpec
from corral.spec.cluster import DataLinkSpec, LustreSpec
from corral.spec.errors import Finding, Loc

_PATH = re.compile(r"/|(/[A-Za-z0-9_][A-Za-z0-9._-]*)+")
_S3 = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(/(?P<prefix>[^/\s][^\s]*)?)?")
# What belongs to the system, to corral, or to another file system of ours (/home).
_SYSTEM = ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "root", "run", "sbin", "sys", "usr")
_RESERVED = tuple(PurePosixPath(f"/{name}") for name in (*_SYSTEM, "home", "opt", "snap", "tmp", "var"))


def check(systems: Sequence[LustreSpec], region: str, base: BaseSpec | None) -> Iterator[Finding]:
    """What is wrong with these file systems."""
    loc: Loc = ("storage", "lustre")
    for number, system in enumerate(systems):
        yield from _check_system((*loc, number), system, region, base)
    yield from rules_names.check_unique([system.name for system in systems], loc, "name", "name")
    yield from _check_mounts_apart(loc, systems)


def _check_system(loc: Loc, system: LustreSpec, region: str, base: BaseSpec | None) -> Iterator[Finding]:
    yield from rules_names.check_name((*loc, "name"), system.name)
    deployment = lustre_deployments().get(system.deployment)
    if deployment is None:
        hint = suggestion(system.deployment, lustre_deployments())
        yield Finding((*loc, "deployment"), f"{system.deployment!r} is not in the catalogue - {hint}")
    else:
        yield from _check_size((*loc, "size_gib"), system.size_gib, deployment)
        yield from _check_count((*loc, "data"), system.data, deployment)
    yield from _check_mount(loc, system)
    if system.zone:
        yield from rules_names.check_base_zone((*loc, "zone"), system.zone, region, base)
    for number, link in enumerate(system.data):
        yield from _check_link((*loc, "data", number), link)
        yield from _check_apart((*loc, "data", number), link, system.data[:number])


def _check_size(loc: Loc, size_gib: int, deployment: LustreDeployment) -> Iterator[Finding]:
    if not deployment.allows(size_gib):
        near = " or ".join(str(size) for size in deployment.nearest_sizes(size_gib))
        yield Finding(
            loc,
            f"{size_gib} is not a size of {deployment.name}, which has {deployment.smallest_gib} GiB and multiples of"
            f" {deployment.step_gib} - use {near}",
        )


def _check_count(loc: Loc, links: Sequence[DataLinkSpec], deployment: LustreDeployment) -> Iterator[Finding]:
    if len(links) > deployment.data_links_maximum:
        yield Finding(
            loc, f"has {len(links)} entries - FSx links at most {deployment.data_links_maximum} a file system"
        )


def _check_mount(loc: Loc, system: LustreSpec) -> Iterator[Finding]:
    mount, where = system.mount_point, (*loc, "mount" if system.mount else "name")
    if not _PATH.fullmatch(mount) or mount == "/":
        if system.mount:
            yield Finding(where, f"{mount!r} is not a directory to mount on - write it like /scratch")
        return
    path = PurePosixPath(mount)
    taken = next((reserved for reserved in _RESERVED if path == reserved or reserved in path.parents), None)
    if taken:
        hint = "use another one" if system.mount else "set mount, or use another name"
        yield Finding(where, f"{mount!r} would hide {taken}, which belongs to the machine - {hint}")


def _check_mounts_apart(loc: Loc, systems: Sequence[LustreSpec]) -> Iterator[Finding]:
    for number, system in enumerate(systems):
        for earlier, other in enumerate(systems[:number]):
            if system.name != other.name and _overlap(system.mount_point, other.mount_point):
                yield Finding(
                    (*loc, number, "mount"),
                    f"{system.mount_point!r} overlaps {other.mount_point!r} of entry {earlier}"
                    " - mount them side by side",
                )
                break


def _check_link(loc: Loc, link: DataLinkSpec) -> Iterator[Finding]:
    if not _PATH.fullmatch(link.path):
        yield Finding((*loc, "path"), f"{link.path!r} is not a directory of the file system - write it like /data")
    s3 = _S3.fullmatch(link.s3)
    if s3 is None or ".." in s3["bucket"]:
        yield Finding((*loc, "s3"), f"{link.s3!r} is not a place in S3 - write it like s3://bucket/prefix")
    for key, events in (("import", link.imports), ("export", link.exports)):
        for number, event in enumerate(events):
            if event in events[:number]:
                yield Finding((*loc, key, number), f"{event!r} is listed twice - keep one")


def _check_apart(loc: Loc, link: DataLinkSpec, earlier: Sequence[DataLinkSpec]) -> Iterator[Finding]:
    """FSx refuses links whose directories overlap, and two links to one place in S3."""
    for number, other in enumerate(earlier):
        if _overlap(link.path, other.path):
            yield Finding(
                (*loc, "path"),
                f"{link.path!r} overlaps {other.path!r} of entry {number} - link directories side by side",
            )
        if link.s3.rstrip("/") == other.s3.rstrip("/"):
            yield Finding((*loc, "s3"), f"{link.s3!r} is linked by entry {number} already - link each place once")


def _overlap(one: str, other: str) -> bool:
    first, second = PurePosixPath(one), PurePosixPath(other)
    return first == second or first in second.parents or second in first.parents
