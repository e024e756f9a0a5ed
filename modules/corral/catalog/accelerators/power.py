"""Maximum power of servers with accelerators, and the overhead of a data centre. `forecast` computes totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from corral.catalog.accelerators.accelerators import AcceleratorModel
from corral.catalog.loader.data_files import read_toml


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPower:
    """A server with this many accelerators. `host_w`: its power without them; `estimated`: not published."""

    name: str
    accelerators: int
    accelerators_w: float
    host_w: float
    source: str
    estimated: bool = False

    @property
    def most_w(self) -> float:
        """The server's power at full load."""
        return self.accelerators_w + self.host_w


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPart:
    """A ratio and its source."""

    value: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRange:
    """Mean power in training, as fractions of the maximum, from low to high."""

    low: float
    high: float
    source: str


def server_of(model: AcceleratorModel) -> ServerPower | None:
    """Return the published server with this accelerator, or a similar one with eight; None if its power is unknown."""
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
    """Return the power usage effectiveness of operators' sites, by operator."""
    rows = read_toml("power.toml")["pue"]
    return MappingProxyType({name: PublishedPart(**row) for name, row in rows.items()})


@cache
def training_load() -> LoadRange:
    """Return the power of servers in training, as a fraction of their maximum."""
    return LoadRange(**read_toml("power.toml")["load"])


@cache
def network_part() -> PublishedPart:
    """Return the power of switches and storage, as a fraction of the servers' power."""
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
