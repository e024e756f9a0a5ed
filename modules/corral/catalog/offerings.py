"""In which zones each instance type is offered, as a snapshot. What AWS offers today is preflight's question to AWS."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from corral.catalog.regions import find_region
from corral.catalog.tables import read_csv


def offered_zones(instance_type: str, region: str) -> tuple[str, ...]:
    """The ids of the region's ordinary zones that offered this type, sorted; empty for a type the snapshot lacks.

    Raises UnknownName where there is no such region.
    """
    prefix = find_region(region).zone_prefix
    return tuple(f"{prefix}-az{number}" for number in _offerings().get((instance_type, region), ()))


def offering_regions(instance_type: str) -> tuple[str, ...]:
    """The regions that offered this type in any of their ordinary zones, sorted; empty for a type it lacks."""
    return tuple(sorted(region for (name, region), zones in _offerings().items() if name == instance_type and zones))


@cache
def _offerings() -> Mapping[tuple[str, str], tuple[str, ...]]:
    rows = read_csv("offerings.csv")
    return MappingProxyType({(row["instance_type"], row["region"]): tuple(row["zones"].split()) for row in rows})
