"""Rules about names: of environments, queues and file systems, and of zones, which AWS names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from corral.catalog.names import suggestion
from corral.catalog.regions import Region, regions
from corral.spec.base import BaseSpec
from corral.spec.errors import Finding, Loc

_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
_LONGEST = 28  # characters: corral-<base>-<account>-<region> must fit into the 63 of a bucket's name
_RESERVED = ("all", "default", "none")  # words of Slurm's own in the place of a partition or node name
_ZONE_NAME = re.compile(r"[a-z]{2}(-[a-z]+)+-\d+[a-z]")
_LOCAL_ZONE = re.compile(r"[a-z]+\d+-[a-z]+\d+-az\d+")


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


def check_unique(names: Sequence[str], loc: Loc, key: str, what: str) -> Iterator[Finding]:
    """The names in this list that an earlier entry has already."""
    for number, name in enumerate(names):
        if (first := names.index(name)) < number:
            yield Finding((*loc, number, key), f"{name!r} is also the {what} of entry {first} - each needs its own")


def check_region_zones(loc: Loc, zones: Sequence[str], region: str) -> Iterator[Finding]:
    """What is wrong with these zone ids, in a region that may itself be unknown."""
    known = regions().get(region)
    for number, zone in enumerate(zones):
        if known and zone not in known.zones:
            yield Finding((*loc, number), _zone_problem(zone, known))
        elif zone in zones[:number]:
            yield Finding((*loc, number), f"{zone!r} is listed twice - keep one")


def check_base_zone(loc: Loc, zone: str, region: str, base: BaseSpec | None) -> Iterator[Finding]:
    """What is wrong with a zone that a cluster names: it must be one that its base spans."""
    known = regions().get(region)
    if known and zone not in known.zones:
        yield Finding(loc, _zone_problem(zone, known))
    elif base and zone not in base.network.zones:
        yield Finding(
            loc, f"{zone!r} is not a zone of base {base.name!r} - it has {', '.join(base.network.zones)}; add it there"
        )


def _zone_problem(zone: str, region: Region) -> str:
    if _ZONE_NAME.fullmatch(zone):
        return f"{zone!r} is a zone's name, which differs between accounts - use an id such as {region.zones[0]!r}"
    if _LOCAL_ZONE.fullmatch(zone):
        return f"{zone!r} is a Local Zone, where corral places nothing - use one of {', '.join(region.zones)}"
    return f"{zone!r} is not a zone of {region.name} - it has {', '.join(region.zones)}"
