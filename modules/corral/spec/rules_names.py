"""Rules about names: of environments, queues and file systems, and of zones, which AWS names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from corral.catalog.names import suggestion
from corral.catalog.regions import Region, regions
from corral.spec.errors import Finding, Loc
from corral.spec.surroundings import Surroundings

_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
_LONGEST = 28  # characters: corral-<base>-<account>-<region> must fit into the 63 of a bucket's name
_RESERVED = ("all", "default", "none")  # words of Slurm's own in the place of a partition or node name
ZONE_NAME = re.compile(r"(?P<region>[a-z]{2}(-[a-z]+)+-\d+)[a-g]")
_S3_PLACE = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(/(?P<prefix>[^/\s][^\s]*)?)?")
_LOCAL_ZONE = re.compile(r"[a-z]+\d+-[a-z]+\d+-az\d+|[a-z]{2}(-[a-z]+)+-\d+-[a-z]+-\d+[a-z]")


def check_stack(name: str, region: str) -> Iterator[Finding]:
    """What is wrong with the name and the region of a stack."""
    if message := name_problem(name):
        yield Finding((), f"the name in Pulumi.{name}.yaml cannot be used: {message}")
    if not region:
        yield Finding(("aws:region",), "is missing - the region to work in, such as us-east-1")
    elif region not in regions():
        yield Finding(("aws:region",), f"{region!r} is not in the catalogue - {suggestion(region, regions())}")


def check_name(loc: Loc, name: str) -> Iterator[Finding]:
    """What is wrong with the name of something inside a cluster."""
    if message := name_problem(name):
        yield Finding(loc, message)
    elif name in _RESERVED:
        yield Finding(loc, f"{name!r} is a word of Slurm's own - use another name")


def name_problem(name: str) -> str | None:
    """Why this cannot be a name that AWS, Slurm and DNS all take; None where it can."""
    if not _NAME.fullmatch(name):
        return f"{name!r} is not a name - use small letters, digits and hyphens, a letter first, no hyphen last"
    if len(name) > _LONGEST:
        return f"{name!r} has {len(name)} characters - use {_LONGEST} or fewer"
    return None


def s3_problem(url: str) -> str | None:
    """Why this names no bucket, and no place in one; None where it does."""
    found = _S3_PLACE.fullmatch(url)
    if found is None or ".." in found["bucket"]:
        return f"{url!r} is not a place in S3 - write it like s3://bucket/prefix"
    return None


def check_unique(names: Sequence[str], loc: Loc, key: str, what: str) -> Iterator[Finding]:
    """The names in this list that an earlier entry has already."""
    for number, name in enumerate(names):
        if (first := names.index(name)) < number:
            yield Finding((*loc, number, key), f"{name!r} is also the {what} of entry {first} - each needs its own")


def check_region_zones(locs: Sequence[Loc], zones: Sequence[str], region: str) -> Iterator[Finding]:
    """What is wrong with these zones, each with its place, in a region that may itself be unknown."""
    known = regions().get(region)
    for number, (loc, zone) in enumerate(zip(locs, zones, strict=True)):
        if known and (message := _zone_problem(zone, known)):
            yield Finding(loc, message)
        elif zone in zones[:number]:
            yield Finding(loc, f"{zone!r} is listed twice - keep one")
        elif bool(ZONE_NAME.fullmatch(zone)) is not bool(ZONE_NAME.fullmatch(zones[0])):
            yield Finding(loc, f"{zone!r} and {zones[0]!r} may be one zone - give all by id, or all by name")


def check_base_zone(loc: Loc, zone: str, around: Surroundings) -> Iterator[Finding]:
    """What is wrong with a zone that a cluster names: it must be one that its base spans, in the base's words."""
    known, base = regions().get(around.region), around.base
    if base and zone in base.network.zone_names:
        return
    if known and (message := _zone_problem(zone, known)):
        yield Finding(loc, message)
    elif base and ZONE_NAME.fullmatch(zone) and not ZONE_NAME.fullmatch(base.network.zone_names[0]):
        there = ", ".join(base.network.zone_names)
        yield Finding(loc, f"{zone!r} is a zone's name, base {base.name!r} has its zones by id - use one of {there}")
    elif base:
        there = ", ".join(base.network.zone_names)
        yield Finding(loc, f"{zone!r} is not a zone of base {base.name!r} - it has {there}; add it there")


def _zone_problem(zone: str, region: Region) -> str | None:
    if zone in region.zones:
        return None
    if match := ZONE_NAME.fullmatch(zone):
        if match["region"] == region.name:
            return None  # which of the letters there are depends on the account
        return f"{zone!r} is a zone of {match['region']} - {region.name} has {', '.join(region.zones)}"
    if _LOCAL_ZONE.fullmatch(zone):
        return f"{zone!r} is a Local Zone, where corral places nothing - use one of {', '.join(region.zones)}"
    return f"{zone!r} is not a zone of {region.name} - it has {', '.join(region.zones)}"
