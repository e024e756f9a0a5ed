"""What servers with accelerators take at most, and what a data centre adds. Sums are forecast's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from corral.catalog.accelerators import AcceleratorModel
from corral.catalog.names import UnknownName
from corral.catalog.tables import read_toml


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPower:
    """A server with so many accelerators. `host_w` is what it takes beside them; `estimated`: nobody published it."""

    name: str
    accelerators: int
    accelerators_w: float
    host_w: float
    source: str
    estimated: bool = False

    @property
    def most_w(self) -> float:
        """All of it, at full load."""
        return self.accelerators_w + self.host_w


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPart:
    """A figure that is a ratio, and where it is from."""

    value: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRange:
    """Mean power in training, as parts of the most, from low to high."""

    low: float
    high: float
    source: str


def server_of(model: AcceleratorModel) -> ServerPower | None:
    """The published server with this accelerator, else eight in one like those; None where its power is unknown."""
    content = read_toml("power.toml")
    for name, row in content["servers"].items():
        if model.name in row["models"]:
            accelerators_w = float(row["accelerators"] * model.tdp_w)
            return ServerPower(
                name=name,
                accelerators=row["accelerators"],
                accelerators_w=accelerators_w,
                host_w=row["most_w"] - accelerators_w,
                source=row["source"],
            )
    return _estimate(model, PublishedPart(value=content["host"]["part"], source=content["host"]["source"]))


@cache
def effectiveness() -> Mapping[str, PublishedPart]:
    """Power usage effectiveness of operators' sites, by operator."""
    rows = read_toml("power.toml")["pue"]
    return MappingProxyType({name: PublishedPart(**row) for name, row in rows.items()})


def find_effectiveness(operator: str) -> PublishedPart:
    """That of this operator (`aws`). Raises UnknownName where there is none."""
    known = effectiveness()
    if operator not in known:
        raise UnknownName("operator", operator, known)
    return known[operator]


@cache
def training_load() -> LoadRange:
    """How much of their power servers take while they train."""
    return LoadRange(**read_toml("power.toml")["load"])


@cache
def network_part() -> PublishedPart:
    """Switches and storage, as part of the servers' power."""
    row = read_toml("power.toml")["network"]
    return PublishedPart(value=row["part"], source=row["source"])


def _estimate(model: AcceleratorModel, host: PublishedPart) -> ServerPower | None:
    if not model.tdp_w:
        return None
    accelerators_w = float(model.tdp_w * 8)
    return ServerPower(
        name=f"eight {model.name}",
        accelerators=8,
        accelerators_w=accelerators_w,
        host_w=accelerators_w * host.value,
        source=host.source,
        estimated=True,
    )
