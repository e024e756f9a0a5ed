"""EC2 instance types: the hardware of a machine. `prices` has its cost; `plan` uses it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any

from corral.catalog.accelerators.accelerators import find_not_on_aws
from corral.catalog.loader.data_files import read_toml
from corral.catalog.loader.suggestions import UnknownName, did_you_mean

EC2_SOURCE = "DescribeInstanceTypes, as bundled with moto 5.2.5"
_SMALL_SIZES = ("nano", "micro", "small", "medium", "large")
_LARGEST = 1024  # times xlarge, the rank of metal: larger than any other size


class Vendor(StrEnum):
    """The vendor of a machine's accelerators: selects the driver, the libraries, and how Slurm finds the devices."""

    NVIDIA = "nvidia"
    NEURON = "neuron"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCard:
    """One network card; `interface_types` are EC2's terms: interface, efa, efa-only."""

    index: int
    interface_types: tuple[str, ...]
    maximum_interfaces: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """The accelerators of a machine, all equal. `name` is Slurm's name of their type; `memory_mib` is per accelerator.

    `link` is the interconnect inside the machine (NVLink 4), None if it is only PCIe; `link_gb_per_s` is the bandwidth
    per accelerator, the sum of both directions as vendors quote it, and 0 without a link.
    """

    name: str
    product: str
    vendor: Vendor
    count: int
    memory_mib: int
    link: str | None
    link_gb_per_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """One instance type. `markets` are EC2's usage classes: on-demand, spot, capacity-block.

    `network_gbps` is the machine's maximum bandwidth, `network_baseline_gbps` its sustained bandwidth; the same for
    `ebs_gbps`, which is None if unknown. `source` is the source of the row.
    """

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
    network_baseline_gbps: float
    efa_maximum: int
    nvme_count: int
    nvme_gb_each: int
    ebs_gbps: float | None
    ebs_baseline_gbps: float | None
    markets: tuple[str, ...]
    source: str


@cache
def instance_types() -> Mapping[str, InstanceType]:
    """Return every type that corral ships, by name, sorted; a project's own types are in its `Catalog`."""
    rows = read_toml("instances.toml")["instances"]
    return MappingProxyType({name: instance_type_from_row(name, rows[name], EC2_SOURCE) for name in sorted(rows)})


@cache
def excluded_types() -> Mapping[str, str]:
    """Return the types of shipped families that corral leaves out, each with the reason, as the end of a sentence."""
    return MappingProxyType(
        {name: row["reason"] for row in read_toml("left_out.toml")["left_out"] for name in row["names"]}
    )


def find_instance_type(name: str) -> InstanceType:
    """Return the shipped type of this name. Raises UnknownName."""
    return find_type(name, instance_types())


def find_type(name: str, types: Mapping[str, InstanceType]) -> InstanceType:
    """Return the type of this name among these. Raises UnknownName."""
    if name not in types:
        raise UnknownName("instance type", name, types, hint=type_hint(name, types))
    return types[name]


def type_hint(name: str, types: Mapping[str, InstanceType]) -> str:
    """Return the hint that ends a message about an unknown type. For a GPU or a family, suggest types that have it."""
    words = set(re.findall(r"[a-z0-9]+", re.sub(r"\d+\s*x|x\s*\d+$", " ", name.lower())))
    for machine in types.values():
        if machine.accelerator and machine.accelerator.name in words:
            having = [other.name for other in types.values() if _has(other, machine.accelerator.name)]
            return f"{machine.accelerator.product} is in {', '.join(having)}"
    if sizes := [other for other in types if other.partition(".")[0] == name.lower()]:
        return f"{name} is a family, which has {', '.join(sizes)}"
    if reason := excluded_types().get(name.lower()):
        return f"{reason} - {_sizes(name.lower(), types)}"
    if question := did_you_mean(name, types):
        return question
    if other := find_not_on_aws(name):
        return _not_rented(other.name, types)
    return _sizes(name.lower(), types) or (
        f"available families are {', '.join(sorted({machine.family for machine in types.values()}))}"
    )


def _not_rented(name: str, types: Mapping[str, InstanceType]) -> str:
    families = ", ".join(sorted({machine.family for machine in types.values() if machine.accelerator}))
    return (
        f"{name} cannot be provisioned: no instance type has it, and the catalog has it only for comparison"
        f" (corral forecast accelerators); families with accelerators are {families}"
    )


def _sizes(name: str, types: Mapping[str, InstanceType]) -> str | None:
    """Return the nearest sizes in the name's family; None if the family is unknown."""
    family, _, size = name.partition(".")
    wanted = _rank(size)
    sizes = [other for other in types if types[other].family == family]
    if wanted is None or not sizes:
        return f"{family} has {', '.join(sizes)}" if sizes else None
    ranks = {other: _rank(other.partition(".")[2]) for other in sizes}
    near = sorted(sizes, key=lambda other: math.inf if (rank := ranks[other]) is None else abs(rank - wanted))
    return f"its nearest sizes are {' and '.join(near[:2])}" if len(near) > 1 else f"{family} has {near[0]}"


def _rank(size: str) -> float | None:
    """Return a number to order sizes by: 0 for xlarge, one more for each doubling; bare metal is the largest."""
    if size in _SMALL_SIZES:
        return _SMALL_SIZES.index(size) - len(_SMALL_SIZES)
    found = re.fullmatch(r"(?:metal-)?(\d*)xl(?:arge)?", size)
    if found is None:
        return math.log2(_LARGEST) if size == "metal" else None
    return math.log2(max(1, int(found[1] or 1)))


def instance_type_from_row(name: str, row: Mapping[str, Any], source: str) -> InstanceType:
    """Make an instance type from a validated row of a data file."""
    accelerator, nvme = row.get("accelerator"), row.get("nvme", {})
    ebs = row.get("ebs_gbps")
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
        network_baseline_gbps=float(row.get("network_baseline_gbps", row["network_gbps"])),
        efa_maximum=row["efa_maximum"],
        nvme_count=nvme.get("count", 0),
        nvme_gb_each=nvme.get("gb_each", 0),
        ebs_gbps=None if ebs is None else float(ebs),
        ebs_baseline_gbps=None if ebs is None else float(row.get("ebs_baseline_gbps", ebs)),
        markets=tuple(row["markets"]),
        source=row.get("source", source),
    )


def _accelerator(row: Mapping[str, Any]) -> Accelerator:
    return Accelerator(
        name=row.get("name", row["product"].lower()),
        product=row["product"],
        vendor=Vendor(row["vendor"]),
        count=row["count"],
        memory_mib=row["memory_mib"],
        link=row.get("link"),
        link_gb_per_s=row.get("link_gb_per_s", 0),
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


def _has(machine: InstanceType, accelerator: str) -> bool:
    return machine.accelerator is not None and machine.accelerator.name == accelerator
