"""The zones that offer each instance type, as a snapshot. Preflight queries today's offerings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from corral.catalog.aws.regions import find_region
from corral.catalog.loader.data_files import read_csv


def offered_zones(instance_type: str, region: str) -> tuple[str, ...]:
    """Return the ids of the region's ordinary zones that offer this type, sorted; empty for an unknown type.

    Raises UnknownName for an unknown region.
    """
    prefix = find_region(region).zone_prefix
    return tuple(f"{prefix}-az{number}" for number in _offerings().get((instance_type, region), ()))


def has_offerings(region: str) -> bool:
    """Return whether the snapshot covers this region; it has nothing on China and GovCloud."""
    return any(name == region for _, name in _offerings())


def offering_regions(instance_type: str) -> tuple[str, ...]:
    """Return the regions that offer this type in any of their ordinary zones, sorted; empty for an unknown type."""
    return tuple(sorted(region for (name, region), zones in _offerings().items() if name == instance_type and zones))


@cache
def _offerings() -> Mapping[tuple[str, str], tuple[str, ...]]:
    rows = read_csv("offerings.csv")
    return MappingProxyType({(row["instance_type"], row["region"]): tuple(row["zones"].split()) for row in rows})
