"""EC2 instance types: what a machine has. What it costs is in `prices`; what we make of it is `plan`'s."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from corral.catalog.names import UnknownName
from corral.catalog.tables import read_toml


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCard:
    """One network card; `interface_types` are EC2's words: interface, efa, efa-only."""

    index: int
    interface_types: tuple[str, ...]
    maximum_interfaces: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """The accelerators of a machine, all alike. `name` is what Slurm calls their type; `memory_mib` is of one."""

    name: str
    product: str
    count: int
    memory_mib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """One instance type. `network_gbps` is its peak over all cards; `markets` are EC2's usage classes."""

    name: str
    family: str
    architecture: str
    vcpus: int
    cores: int
    threads_per_core: int
    sockets: int
    memory_mib: int
    accelerator: Accelerator | None
    network_cards: tuple[NetworkCard, ...]
    network_gbps: float
    efa_maximum: int
    nvme_count: int
    nvme_gb_each: int
    markets: tuple[str, ...]


@cache
def instance_types() -> Mapping[str, InstanceType]:
    """Every type of the catalogue by name, sorted."""
    rows = read_toml("instances.toml")
    return MappingProxyType({name: _instance_type(name, rows[name]) for name in sorted(rows)})


def find_instance_type(name: str) -> InstanceType:
    """The type of this name. Raises UnknownName where the catalogue has none."""
    types = instance_types()
    if name not in types:
        raise UnknownName("instance type", name, types)
    return types[name]


def _instance_type(name: str, row: Mapping[str, Any]) -> InstanceType:
    accelerator = row.get("accelerator")
    return InstanceType(
        name=name,
        family=name.partition(".")[0],
        architecture=row["architecture"],
        vcpus=row["vcpus"],
        cores=row["cores"],
        threads_per_core=row["threads_per_core"],
        sockets=row["sockets"],
        memory_mib=row["memory_mib"],
        accelerator=_accelerator(accelerator) if accelerator else None,
        network_cards=tuple(card for cards in row["network_cards"] for card in _network_cards(cards)),
        network_gbps=float(row["network_gbps"]),
        efa_maximum=row["efa_maximum"],
        nvme_count=row["nvme"]["count"] if "nvme" in row else 0,
        nvme_gb_each=row["nvme"]["gb_each"] if "nvme" in row else 0,
        markets=tuple(row["markets"]),
    )


def _accelerator(row: Mapping[str, Any]) -> Accelerator:
    return Accelerator(
        name=row["product"].lower(), product=row["product"], count=row["count"], memory_mib=row["memory_mib"]
    )


def _network_cards(row: Mapping[str, Any]) -> tuple[NetworkCard, ...]:
    return tuple(
        NetworkCard(
            index=index,
            interface_types=tuple(row["interface_types"]),
            maximum_interfaces=row["maximum_interfaces"],
        )
        for index in range(row["first"], row["last"] + 1)
    )
