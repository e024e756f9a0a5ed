"""Rules about names of environments, queues, file systems and zones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from corral.catalog.aws.regions import Region, regions
from corral.catalog.loader.suggestions import suggestion
from corral.spec.spec_errors import Loc, SpecFinding, SpecProblem
from corral.spec.validation_context import ValidationContext

_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
_LONGEST = 28  # characters: corral-<base>-<account>-<region> must fit into the 63 of a bucket's name
_RESERVED = ("all", "default", "none")  # keywords that Slurm accepts instead of a partition or node name
ZONE_NAME = re.compile(r"(?P<region>[a-z]{2}(-[a-z]+)+-\d+)[a-g]")
_S3_URL = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(/(?P<prefix>[^/\s][^\s]*)?)?")
_PATTERNS = frozenset("*?$")  # wildcards and variables in an ARN of a policy. Source: IAM User Guide, "Resource"
# Of a base, or of states: corral-BASE-ACCOUNT-REGION. They hold what machines run as root.
_OWN_BUCKET = re.compile(r"corral-[a-z0-9-]+-\d{12}-[a-z]{2}(-[a-z]+)+-\d+")
_LOCAL_ZONE = re.compile(r"[a-z]+\d+-[a-z]+\d+-az\d+|[a-z]{2}(-[a-z]+)+-\d+-[a-z]+-\d+[a-z]")


def check_stack(name: str, region: str) -> Iterator[SpecFinding]:
    """Yield findings about a stack's name and region."""
    if problem := name_problem(name):
        yield SpecFinding((), f"invalid name in Pulumi.{name}.yaml: {problem.message}", problem.fix)
    if not region:
        yield SpecFinding(("aws:region",), "is missing", "set a region, such as us-east-1")
    elif region not in regions():
        yield SpecFinding(("aws:region",), f"{region!r} is not in the catalog", suggestion(region, regions()))


def check_name(loc: Loc, name: str) -> Iterator[SpecFinding]:
    """Yield findings about the name of a queue or a file system."""
    if problem := name_problem(name):
        yield problem.at(loc)
    elif name in _RESERVED:
        yield SpecFinding(loc, f"{name!r} is reserved by Slurm", "use another name")


def name_problem(name: str) -> SpecProblem | None:
    """Return why AWS, Slurm or DNS would reject this name; None if it is valid."""
    if not _NAME.fullmatch(name):
        return SpecProblem(
            f"{name!r} is not a valid name", "use lowercase letters, digits and hyphens, a letter first, no hyphen last"
        )
    if len(name) > _LONGEST:
        return SpecProblem(f"{name!r} has {len(name)} characters", f"use {_LONGEST} or fewer")
    return None


def s3_problem(url: str) -> SpecProblem | None:
    """Return why jobs and file systems cannot use this bucket or prefix; None if they can."""
    found = _S3_URL.fullmatch(url)
    if found is None or ".." in found["bucket"] or not url.isprintable():
        return SpecProblem(f"{url!r} is not an S3 URL", "write it like s3://bucket/prefix")
    if _PATTERNS & set(url):
        return SpecProblem(f"{url!r} contains *, ? or $, which IAM policies expand", "use a prefix without them")
    if _OWN_BUCKET.fullmatch(found["bucket"]):
        text = f"{url!r} is a bucket of corral's own, which holds what machines run, or states"
        return SpecProblem(text, "use a bucket of yours; jobs reach their checkpoints without an entry")
    return None


def check_unique(names: Sequence[str], loc: Loc, key: str, what: str) -> Iterator[SpecFinding]:
    """Yield names that an earlier entry uses already."""
    for number, name in enumerate(names):
        if (first := names.index(name)) < number:
            yield SpecFinding((*loc, number, key), f"{name!r} is also the {what} of entry {first}", "use another name")


def check_region_zones(locs: Sequence[Loc], zones: Sequence[str], region: str) -> Iterator[SpecFinding]:
    """Yield findings about these zones, each with its location. The region itself may be unknown."""
    known = regions().get(region)
    for number, (loc, zone) in enumerate(zip(locs, zones, strict=True)):
        if known and (problem := _zone_problem(zone, known)):
            yield problem.at(loc)
        elif zone in zones[:number]:
            yield SpecFinding(loc, f"{zone!r} is listed twice", "keep one")
        elif bool(ZONE_NAME.fullmatch(zone)) is not bool(ZONE_NAME.fullmatch(zones[0])):
            yield SpecFinding(
                loc, f"{zone!r} and {zones[0]!r} may be the same zone", "use ids for all, or names for all"
            )


def check_base_zone(loc: Loc, zone: str, context: ValidationContext) -> Iterator[SpecFinding]:
    """Yield findings about a cluster's zone: its base must span it, named the same way (by id or by name)."""
    known, base = regions().get(context.region), context.base
    if base and zone in base.network.zone_names:
        return
    if known and (problem := _zone_problem(zone, known)):
        yield problem.at(loc)
    elif base and ZONE_NAME.fullmatch(zone) and not ZONE_NAME.fullmatch(base.network.zone_names[0]):
        there = ", ".join(base.network.zone_names)
        yield SpecFinding(
            loc, f"{zone!r} is a zone name, but base {base.name!r} declares zone ids", f"use one of {there}"
        )
    elif base:
        there = ", ".join(base.network.zone_names)
        yield SpecFinding(
            loc, f"{zone!r} is not a zone of base {base.name!r}", f"use one of {there}, or add it to the base"
        )


def _zone_problem(zone: str, region: Region) -> SpecProblem | None:
    if zone in region.zones:
        return None
    if match := ZONE_NAME.fullmatch(zone):
        if match["region"] == region.name:
            return None  # the letters available depend on the account
        return SpecProblem(f"{zone!r} is a zone of {match['region']}", f"{region.name} has {', '.join(region.zones)}")
    if _LOCAL_ZONE.fullmatch(zone):
        return SpecProblem(
            f"{zone!r} is a Local Zone, which corral does not support", f"use one of {', '.join(region.zones)}"
        )
    return SpecProblem(f"{zone!r} is not a zone of {region.name}", f"it has {', '.join(region.zones)}")
