"""The planned network in few numbers: sets of leaves below pods below a core, however many nodes there are.

A *unit* is a set of leaves with the nodes below it. Where rails are kept apart, card i of each of its nodes is on its
leaf i; else it is one leaf with all cards of a few nodes. A pod is the units below the same spines. One unit needs one
tier, one pod two, more three. All rails are alike, so a node's cards count as one link of their sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from corral.catalog.fabric import FabricDesign


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """Nodes and what joins them. `rails`: leaves of a unit. A taper is what comes in from below, of what leaves above.

    Whole units and pods have all of their uplinks, also the last ones, which may have fewer nodes.
    """

    nodes: int
    nics: int
    nic_gbps: float
    rails: int
    nodes_per_unit: int
    units_per_pod: int
    leaf_taper: float
    spine_taper: float

    @property
    def node_gbps(self) -> float:
        """What a node sends, all cards together."""
        return self.nics * self.nic_gbps

    @property
    def units(self) -> int:
        """How many there are."""
        return math.ceil(self.nodes / self.nodes_per_unit)

    @property
    def leaves(self) -> int:
        """Switches that nodes are on."""
        return self.units * self.rails

    @property
    def pods(self) -> int:
        """How many there are."""
        return math.ceil(self.units / self.units_per_pod)

    @property
    def tiers(self) -> int:
        """Of switches, from 1 to 3."""
        if self.units == 1:
            return 1
        return 2 if self.pods == 1 else 3

    @property
    def unit_gbps(self) -> float:
        """Of a unit's uplinks, one way."""
        return self.nodes_per_unit * self.node_gbps / self.leaf_taper

    @property
    def pod_gbps(self) -> float:
        """Of a pod's uplinks, one way."""
        return self.units_per_pod * self.unit_gbps / self.spine_taper

    @property
    def oversubscription(self) -> float:
        """What all nodes send, of what the highest tier in use lets through: the product of the tapers below it."""
        return (1.0, self.leaf_taper, self.leaf_taper * self.spine_taper)[self.tiers - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """How many of them each tier has."""

    leaves: int
    spines: int
    cores: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.leaves + self.spines + self.cores


def plan_fabric(nodes: int, nics: int, nic_gbps: float, design: FabricDesign) -> Fabric:
    """The network of so many nodes with so many cards each, of as few tiers as hold them.

    Where three tiers of such switches are too few, pods are larger than their ports allow. Raises ValueError where a
    switch has no room for one node.
    """
    ports = ports_of(design, nic_gbps)
    down, spine_down = (int(ports * taper / (1 + taper)) for taper in (design.leaf_taper, design.spine_taper))
    rails = nics if design.rail_optimised else 1
    nodes_per_unit = down * rails // nics
    if not nodes_per_unit:
        raise ValueError(f"a switch with {ports} ports of {nic_gbps:g} Gb/s has no room for {nics} cards")
    units = math.ceil(nodes / nodes_per_unit)
    one_pod = units * rails <= ports  # each spine has a port for every leaf
    units_per_pod = units if one_pod else max(1, spine_down // rails, math.ceil(units / ports))
    return Fabric(
        nodes=nodes,
        nics=nics,
        nic_gbps=nic_gbps,
        rails=rails,
        nodes_per_unit=nodes_per_unit,
        units_per_pod=units_per_pod,
        leaf_taper=design.leaf_taper,
        spine_taper=design.spine_taper,
    )


def ports_of(design: FabricDesign, nic_gbps: float) -> int:
    """Ports of a switch at the rate of a card: fast ports are split."""
    return int(design.switch_gbps / nic_gbps)


def count_switches(fabric: Fabric, ports: int) -> Switches:
    """The switches with so many ports that the fabric takes; every pod but a lone one is fully built."""
    if fabric.tiers == 1:
        return Switches(leaves=fabric.leaves, spines=0, cores=0)
    uplinks = fabric.nodes_per_unit * fabric.nics / fabric.leaf_taper  # of a unit
    if fabric.tiers == 2:
        return Switches(leaves=fabric.leaves, spines=math.ceil(fabric.units * uplinks / ports), cores=0)
    below = fabric.units_per_pod * uplinks
    spines = math.ceil(below * (1 + 1 / fabric.spine_taper) / ports)
    cores = math.ceil(fabric.pods * below / fabric.spine_taper / ports)
    return Switches(leaves=fabric.leaves, spines=fabric.pods * spines, cores=cores)
