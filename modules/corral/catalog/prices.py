"""What AWS charges, as a dated snapshot: instances by hour, and the services beside them by their unit.

No price is asked of AWS here, and none is guessed: what the snapshot does not have is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType

from corral.catalog.tables import read_csv

INSTANCE_PRICES_SOURCE = "skypilot-catalog v8 aws/vms.csv at 00148f2"
INSTANCE_PRICES_AS_OF = "after June 2025"
_EVERYWHERE = "*"  # the source has one price, and at most names the regions that differ


class Trust(StrEnum):
    """How well a figure is known: by AWS itself, its price list as copied, others, memory, or the project's file."""

    VERIFIED = "verified"
    PRICE_LIST = "price-list"
    SECOND_HAND = "second-hand"
    MEMORY = "memory"
    OWN = "own"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstancePrice:
    """One type in one region; None where the snapshot has no such price. Spot: its lowest and highest zone."""

    on_demand_usd_per_hour: float | None
    spot_min_usd_per_hour: float | None
    spot_max_usd_per_hour: float | None
    as_of: str
    source: str
    trust: Trust


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityBlockPrice:
    """USD an hour for one instance of a Capacity Block, paid in full in advance. AWS resets these prices at times."""

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
    """The price of this type in this region; None where the snapshot has no such row."""
    row = _instance_rows().get((instance_type, region))
    return _instance_row(row) if row else None


def capacity_block_price(instance_type: str, region: str) -> CapacityBlockPrice | None:
    """What a Capacity Block of this type costs in this region; None where the snapshot knows no price for it."""
    known = _capacity_block_prices()
    return known.get((instance_type, region)) or known.get((instance_type, _EVERYWHERE))


def service_price(name: str, region: str) -> ServicePrice | None:
    """The price of this service (`nat-gateway-hour`) in this region; None where the snapshot has no such row."""
    return _service_prices().get((name, region))


@cache
def _instance_rows() -> Mapping[tuple[str, str], Mapping[str, str]]:
    """Rows, not prices: there are over a thousand, of which a plan needs a few."""
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
