"""AWS's prices, as a dated snapshot: instances per hour, and other services per unit.

Nothing here queries AWS or guesses a price: a price that is not in the snapshot is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType

from corral.catalog.loader.data_files import read_csv

INSTANCE_PRICES_SOURCE = "skypilot-catalog v8 aws/vms.csv at 00148f2"
INSTANCE_PRICES_AS_OF = "after June 2025"
_EVERYWHERE = "*"  # the source has one price for all regions but those that it names


class Trust(StrEnum):
    """The source of a figure: AWS itself, a copy of its price list, others, or the user's catalog file."""

    VERIFIED = "verified"
    PRICE_LIST = "price-list"
    SECOND_HAND = "second-hand"
    USER = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstancePrice:
    """The prices of one type in one region; None if not in the snapshot. Spot: the lowest and highest zone."""

    on_demand_usd_per_hour: float | None
    spot_min_usd_per_hour: float | None
    spot_max_usd_per_hour: float | None
    as_of: str
    source: str
    trust: Trust


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityBlockPrice:
    """USD per hour for one instance of a Capacity Block, paid in full in advance. AWS changes these prices at times."""

    usd_per_hour: float
    as_of: str
    source: str
    trust: Trust


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePrice:
    """USD for one `unit` of a service in one region."""

    name: str
    unit: str
    usd: float
    as_of: str
    source: str
    trust: Trust


def instance_price(instance_type: str, region: str) -> InstancePrice | None:
    """Return the price of this type in this region; None if it is not in the snapshot."""
    row = _instance_rows().get((instance_type, region))
    return _instance_row(row) if row else None


def capacity_block_price(instance_type: str, region: str) -> CapacityBlockPrice | None:
    """Return the price of Capacity Blocks of this type in this region; None if it is not in the snapshot."""
    known = _capacity_block_prices()
    return known.get((instance_type, region)) or known.get((instance_type, _EVERYWHERE))


def service_price(name: str, region: str) -> ServicePrice | None:
    """Return the price of this service (`nat-gateway-hour`) in this region; None if it is not in the snapshot."""
    return _service_prices().get((name, region))


@cache
def _instance_rows() -> Mapping[tuple[str, str], Mapping[str, str]]:
    """Return raw rows, not records: there are over a thousand, and a plan uses few of them."""
    return MappingProxyType({(row["instance_type"], row["region"]): row for row in read_csv("prices.csv")})


@cache
def _capacity_block_prices() -> Mapping[tuple[str, str], CapacityBlockPrice]:
    rows = read_csv("capacity_blocks.csv")
    return MappingProxyType({(row["instance_type"], row["region"]): _capacity_block_row(row) for row in rows})


@cache
def _service_prices() -> Mapping[tuple[str, str], ServicePrice]:
    return MappingProxyType({(row["name"], row["region"]): _service_row(row) for row in read_csv("services.csv")})


def _instance_row(row: Mapping[str, str]) -> InstancePrice:
    return InstancePrice(
        on_demand_usd_per_hour=_usd(row["on_demand"]),
        spot_min_usd_per_hour=_usd(row["spot_min"]),
        spot_max_usd_per_hour=_usd(row["spot_max"]),
        as_of=INSTANCE_PRICES_AS_OF,
        source=INSTANCE_PRICES_SOURCE,
        trust=Trust.SECOND_HAND,
    )


def _capacity_block_row(row: Mapping[str, str]) -> CapacityBlockPrice:
    return CapacityBlockPrice(
        usd_per_hour=float(row["usd"]), as_of=row["date"], source=row["source"], trust=Trust(row["trust"])
    )


def _service_row(row: Mapping[str, str]) -> ServicePrice:
    return ServicePrice(
        name=row["name"],
        unit=row["unit"],
        usd=float(row["usd"]),
        as_of=row["date"],
        source=row["source"],
        trust=Trust(row["trust"]),
    )


def _usd(cell: str) -> float | None:
    return float(cell) if cell else None
