"""The catalog of one project: the shipped catalog, and rows that the project's own `catalog.toml` adds or replaces.

It is a value: code that reads a project's files reads it once and passes it on. `spec` parses the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from corral.catalog.aws import prices
from corral.catalog.aws.instance_types import InstanceType, find_type, instance_types
from corral.catalog.aws.prices import CapacityBlockPrice, InstancePrice

FILE_NAME = "catalog.toml"
_NONE: Mapping[tuple[str, str], Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Instance types by name, sorted, and prices; `replaced` names the shipped types that the project replaces."""

    instance_types: Mapping[str, InstanceType]
    replaced: tuple[str, ...] = ()
    own_prices: Mapping[tuple[str, str], InstancePrice]
    own_capacity_block_prices: Mapping[tuple[str, str], CapacityBlockPrice]

    def instance_type(self, name: str) -> InstanceType:
        """Return the type of this name. Raises UnknownName."""
        return find_type(name, self.instance_types)

    def instance_price(self, name: str, region: str) -> InstancePrice | None:
        """Return the price of this type in this region, preferring the project's own; None if unknown."""
        return self.own_prices.get((name, region)) or prices.instance_price(name, region)

    def capacity_block_price(self, name: str, region: str) -> CapacityBlockPrice | None:
        """Return the price of Capacity Blocks of this type in this region; None if unknown."""
        return self.own_capacity_block_prices.get((name, region)) or prices.capacity_block_price(name, region)


@cache
def shipped_catalog() -> Catalog:
    """Return the catalog of a project without a catalog.toml."""
    return Catalog(instance_types=instance_types(), own_prices=_NONE, own_capacity_block_prices=_NONE)
