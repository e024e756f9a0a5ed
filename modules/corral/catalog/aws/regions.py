"""Regions and their ordinary zones, by zone id. Preflight queries the types that a zone offers today."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from corral.catalog.loader.data_files import read_csv
from corral.catalog.loader.suggestions import UnknownName


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """One region; its zone ids begin with `zone_prefix` (`use1-az4` in us-east-1)."""

    name: str
    zone_prefix: str
    zones: tuple[str, ...]


@cache
def regions() -> Mapping[str, Region]:
    """Return every region of the catalog by name, sorted."""
    rows = sorted(read_csv("regions.csv"), key=lambda row: row["region"])
    return MappingProxyType({row["region"]: _region(row) for row in rows})


def find_region(name: str) -> Region:
    """Return the region of this name. Raises UnknownName."""
    known = regions()
    if name not in known:
        raise UnknownName("region", name, known)
    return known[name]


def _region(row: Mapping[str, str]) -> Region:
    return Region(name=row["region"], zone_prefix=row["zone_prefix"], zones=tuple(row["zones"].split()))
