"""All-reduce by algorithm: ring, double binary tree, and reduction in nodes before and after that between them.

By formula, with a constant time for each step: how algorithms differ by size. What EFA was measured to do is added as a
line of its own, the time that a forecast takes (`Machine.all_reduce_s`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from corral.catalog.training_constants import training_constants
from corral.forecast.training.collectives import (
    bus_bandwidth,
    ring_all_reduce_s,
    tree_all_reduce_s,
    two_level_all_reduce_s,
)
from corral.forecast.training.network import Group, Machine

SIZES = tuple(2**power for power in range(16, 35, 2))  # bytes: 64 KiB to 16 GiB, as nccl-tests sweeps them


class Algorithm(StrEnum):
    """How it is done; MEASURED is hierarchical, at the share of the line that EFA was measured to reach."""

    RING = "ring"
    TREE = "tree"
    HIERARCHICAL = "hierarchical"
    MEASURED = "measured share"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllReduce:
    """One of a buffer of `size` bytes, which every rank has."""

    algorithm: Algorithm
    size: float
    ranks: float
    seconds: float

    @property
    def bus_bandwidth(self) -> float:
        """Bytes a second as nccl-tests prints them, 2 (n-1)/n M / t."""
        return bus_bandwidth(self.size, self.ranks, self.seconds)


def all_reduces(size: float, machine: Machine, group: Group) -> tuple[AllReduce, ...]:
    """By each algorithm; of one rank there is none, and MEASURED is there only where nodes are left."""
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


def sweep(machine: Machine, group: Group, sizes: Sequence[float] = SIZES) -> tuple[tuple[AllReduce, ...], ...]:
    """The same for each of these sizes."""
    return tuple(all_reduces(size, machine, group) for size in sizes)


def _rate(machine: Machine, group: Group) -> float:
    """Bytes a second that leave a node in one direction, by all cards of the group, or its link where that is less."""
    if group.across <= 1:
        return machine.link_rate
    network = group.inside * machine.network_rate
    return network if group.inside <= 1 else min(network, machine.link_rate)


def _ring_s(size: float, machine: Machine, group: Group) -> float:
    """One ring through all ranks on each card at once; of its steps one a node goes over the network."""
    constants = training_constants()
    between = group.across if group.across > 1 else 0.0
    steps = between * constants.network_alpha_s + (group.ranks - between) * constants.link_alpha_s
    return ring_all_reduce_s(size, group.ranks, steps / group.ranks, _rate(machine, group))


def _tree_s(size: float, machine: Machine, group: Group) -> float:
    """A double binary tree over nodes, a chain in each of them, as NCCL has it."""
    constants = training_constants()
    if group.across <= 1:
        return tree_all_reduce_s(size, group.inside, constants.link_alpha_s, machine.link_rate)
    chains = 2 * (group.inside - 1) * constants.link_alpha_s
    return chains + tree_all_reduce_s(size, group.across, constants.network_alpha_s, _rate(machine, group))


def _hierarchical_s(size: float, machine: Machine, group: Group) -> float:
    """Reduced in each node, each rank's part by a ring over its rail, and gathered again."""
    constants = training_constants()
    if group.across <= 1:
        return _ring_s(size, machine, group)
    steps = (group.inside - 1) * constants.link_alpha_s + (group.across - 1) * constants.network_alpha_s
    taken = two_level_all_reduce_s(size, group.inside, group.across, machine.link_rate, machine.network_rate)
    return 2 * steps + taken
