"""A small fabric link by link, to check the formulas. Large fabrics have millions of links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from corral.forecast.fabric.topology import Fabric, count_switches


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link between a node or switch and a switch above it, with its rate each way. Names: `node-3`, `leaf-0-1`."""

    below: str
    above: str
    gbps: float


def links(fabric: Fabric, ports: int) -> tuple[Link, ...]:
    """Every link. Links between the same two switches are one; `ports` are those of a switch.

    Each leaf is joined to every spine of its pod, and spine j of every pod to the cores of group j.
    """
    switches = count_switches(fabric, ports)
    spines = switches.spines // fabric.pods
    return (*_to_leaves(fabric), *_to_spines(fabric, spines), *_to_cores(fabric, spines, switches.cores))


def _to_leaves(fabric: Fabric) -> Iterator[Link]:
    for node in range(fabric.nodes):
        for rail in range(fabric.rails):
            leaf = f"leaf-{node // fabric.nodes_per_unit}-{rail}"
            yield Link(below=f"node-{node}", above=leaf, gbps=fabric.node_gbps / fabric.rails)


def _to_spines(fabric: Fabric, spines: int) -> Iterator[Link]:
    for unit in range(fabric.units):
        for rail in range(fabric.rails):
            for spine in range(spines):
                above = f"spine-{unit // fabric.units_per_pod}-{spine}"
                yield Link(below=f"leaf-{unit}-{rail}", above=above, gbps=fabric.unit_gbps / fabric.rails / spines)


def _to_cores(fabric: Fabric, spines: int, cores: int) -> Iterator[Link]:
    for pod in range(fabric.pods):
        for spine in range(spines):
            group = [core for core in range(cores) if core % spines == spine % cores] if cores else []
            for core in group:
                yield Link(
                    below=f"spine-{pod}-{spine}", above=f"core-{core}", gbps=fabric.pod_gbps / spines / len(group)
                )
