"""The catalogue of one project: what corral ships, and what the project's own `catalogue.toml` adds or replaces.

It is a value: whoever reads a project's files reads this as well, once, and hands it on.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from corral.catalog import prices
from corral.catalog.instances import InstanceType, find_type, instance_type, instance_types
from corral.catalog.prices import CapacityBlockPrice, InstancePrice, Trust
from corral.catalog.problems import CatalogueErrors, CatalogueProblem, path_of
from corral.catalog.rules import check_catalogue

FILE_NAME = "catalogue.toml"
_NONE: Mapping[tuple[str, str], Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Instance types by name, sorted, and prices; `replaced` names the shipped types that the project states anew."""

    instance_types: Mapping[str, InstanceType]
    replaced: tuple[str, ...] = ()
    own_prices: Mapping[tuple[str, str], InstancePrice]
    own_capacity_block_prices: Mapping[tuple[str, str], CapacityBlockPrice]

    def instance_type(self, name: str) -> InstanceType:
        """The type of this name. Raises UnknownName where there is none."""
        return find_type(name, self.instance_types)

    def instance_price(self, name: str, region: str) -> InstancePrice | None:
        """The price of this type in this region, the project's own before the snapshot's; None where none is known."""
        return self.own_prices.get((name, region)) or prices.instance_price(name, region)

    def capacity_block_price(self, name: str, region: str) -> CapacityBlockPrice | None:
        """What a Capacity Block of this type costs in this region; None where it is not known."""
        return self.own_capacity_block_prices.get((name, region)) or prices.capacity_block_price(name, region)


@cache
def shipped_catalogue() -> Catalogue:
    """The catalogue of a project that adds nothing."""
    return Catalogue(instance_types=instance_types(), own_prices=_NONE, own_capacity_block_prices=_NONE)


def project_catalogue(project_dir: Path) -> Catalogue:
    """The catalogue of the project in this directory. Raises CatalogueErrors with every mistake in its file."""
    try:
        text = (project_dir / FILE_NAME).read_text(encoding="utf-8")
    except FileNotFoundError:
        return shipped_catalogue()
    except OSError as error:
        raise _whole_file(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _whole_file("is not UTF-8 text") from None
    return parse_catalogue(text)


def parse_catalogue(text: str) -> Catalogue:
    """The catalogue of a project whose file has this text. Raises CatalogueErrors with every mistake."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _whole_file(f"is not TOML: {error}") from None
    shipped = instance_types()
    found = dict.fromkeys(check_catalogue(content, shipped))
    if found:
        raise CatalogueErrors(
            CatalogueProblem(file=FILE_NAME, path=path_of(one.path), message=one.message) for one in found
        )
    rows = content.get("instances", {})
    types = {**shipped, **{name: instance_type(name, row, FILE_NAME) for name, row in rows.items()}}
    priced = _priced(content.get("prices", {}))
    return Catalogue(
        instance_types=MappingProxyType({name: types[name] for name in sorted(types)}),
        replaced=tuple(sorted(set(rows) & set(shipped))),
        own_prices=MappingProxyType(
            {at: _price(row) for at, row in priced.items() if {"on_demand", "spot_min"} & set(row)}
        ),
        own_capacity_block_prices=MappingProxyType(
            {at: _capacity_block_price(row) for at, row in priced.items() if "capacity_block" in row}
        ),
    )


def _priced(prices_by_type: Mapping[str, Mapping[str, Any]]) -> Mapping[tuple[str, str], Mapping[str, Any]]:
    return {(name, region): row for name, by_region in prices_by_type.items() for region, row in by_region.items()}


def _price(row: Mapping[str, Any]) -> InstancePrice:
    return InstancePrice(
        on_demand_usd_per_hour=_usd(row, "on_demand"),
        spot_min_usd_per_hour=_usd(row, "spot_min"),
        spot_max_usd_per_hour=_usd(row, "spot_max"),
        as_of=str(row["as_of"]),
        source=row.get("source", FILE_NAME),
        trust=Trust.OWN,
    )


def _capacity_block_price(row: Mapping[str, Any]) -> CapacityBlockPrice:
    return CapacityBlockPrice(
        usd_per_hour=float(row["capacity_block"]),
        as_of=str(row["as_of"]),
        source=row.get("source", FILE_NAME),
        trust=Trust.OWN,
    )


def _usd(row: Mapping[str, Any], key: str) -> float | None:
    return float(row[key]) if key in row else None


def _whole_file(message: str) -> CatalogueErrors:
    return CatalogueErrors([CatalogueProblem(file=FILE_NAME, path="", message=message)])
