"""All-reduce by algorithm: ring, double binary tree, and hierarchical (within nodes, between nodes, within nodes).

Formulas with a constant time per step show how the algorithms differ by size. A separate line shows the measured share
of EFA, which the forecast uses (`AcceleratorLinks.all_reduce_s`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from corral.catalog.accelerators.training_constants import training_constants
from corral.forecast.training.collective_time import (
    bus_bandwidth,
    ring_all_reduce_s,
    tree_all_reduce_s,
    two_level_all_reduce_s,
)
from corral.forecast.training.interconnect import AcceleratorLinks, RankGroup

SIZES = tuple(2**power for power in range(16, 35, 2))  # bytes: 64 KiB to 16 GiB, as nccl-tests sweeps them


class Algorithm(StrEnum):
    """The algorithm; MEASURED is hierarchical at the measured share of EFA's line rate."""

    RING = "ring"
    TREE = "tree"
    HIERARCHICAL = "hierarchical"
    MEASURED = "measured share"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllReduce:
    """An all-reduce of a buffer of `size` bytes on every rank."""

    algorithm: Algorithm
    size: float
    ranks: float
    seconds: float

    @property
    def bus_bandwidth(self) -> float:
        """Bytes per second as nccl-tests prints them, 2 (n-1)/n M / t."""
        return bus_bandwidth(self.size, self.ranks, self.seconds)


def all_reduces(size: float, machine: AcceleratorLinks, group: RankGroup) -> tuple[AllReduce, ...]:
    """The all-reduce by each algorithm; empty for one rank. MEASURED only if the group spans nodes."""
    if group.ranks <= 1:
        return ()
    seconds = {
        Algorithm.RING: _ring_s(size, machine, group),
        Algorithm.TREE: _tree_s(size, machine, group),
        Algorithm.HIERARCHICAL: _hierarchical_s(size, machine, group),
        **({Algorithm.MEASURED: machine.all_reduce_s(size, group)} if group.across > 1 else {}),
    }
    return tuple(
        AllReduce(algorithm=algorithm, size=size, ranks=group.ranks, seconds=taken)
        for algorithm, taken in seconds.items()
    )


def all_reduce_curves(
    machine: AcceleratorLinks, group: RankGroup, sizes: Sequence[float] = SIZES
) -> tuple[tuple[AllReduce, ...], ...]:
    """The all-reduces for each of these sizes."""
    return tuple(all_reduces(size, machine, group) for size in sizes)


def _rate(machine: AcceleratorLinks, group: RankGroup) -> float:
    """Bytes per second out of a node through all cards of the group, at most the rate of its link."""
    if group.across <= 1:
        return machine.link_rate
    network = group.inside * machine.network_rate
    return network if group.inside <= 1 else min(network, machine.link_rate)


def _ring_s(size: float, machine: AcceleratorLinks, group: RankGroup) -> float:
    """One ring through all ranks on each card; one of its steps per node crosses the network."""
    constants = training_constants()
    between = group.across if group.across > 1 else 0.0
    steps = between * constants.network_alpha_s + (group.ranks - between) * constants.link_alpha_s
    return ring_all_reduce_s(size, group.ranks, steps / group.ranks, _rate(machine, group))


def _tree_s(size: float, machine: AcceleratorLinks, group: RankGroup) -> float:
    """A double binary tree over nodes and a chain in each node, as in NCCL."""
    constants = training_constants()
    if group.across <= 1:
        return tree_all_reduce_s(size, group.inside, constants.link_alpha_s, machine.link_rate)
    chains = 2 * (group.inside - 1) * constants.link_alpha_s
    return chains + tree_all_reduce_s(size, group.across, constants.network_alpha_s, _rate(machine, group))


def _hierarchical_s(size: float, machine: AcceleratorLinks, group: RankGroup) -> float:
    """A reduce-scatter in each node, a ring over the rail of each rank's part, and an all-gather."""
    constants = training_constants()
    if group.across <= 1:
        return _ring_s(size, machine, group)
    steps = (group.inside - 1) * constants.link_alpha_s + (group.across - 1) * constants.network_alpha_s
    taken = two_level_all_reduce_s(size, group.inside, group.across, machine.link_rate, machine.network_rate)
    return 2 * steps + taken
