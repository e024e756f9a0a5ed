"""The planned network as numbers: units of leaves below pods below a core, for any number of nodes.

A *unit* is a set of leaves with their nodes. In a rail-optimised network, card i of each node is on leaf i of its unit;
otherwise a unit is one leaf with all cards of a few nodes. A pod is the units below the same spines. One unit needs one
tier, one pod two, more pods three. All rails are equal, so a node's cards count as one link with their total rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from corral.catalog.accelerators.fabric import FabricDesign


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """Nodes and their network. `rails`: leaves per unit. A taper is the ratio of downlink to uplink capacity.

    All units and pods have all of their uplinks, even the last ones with fewer nodes.
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
        """The rate of a node, all cards together."""
        return self.nics * self.nic_gbps

    @property
    def units(self) -> int:
        """The number of units."""
        return math.ceil(self.nodes / self.nodes_per_unit)

    @property
    def leaves(self) -> int:
        """The number of leaf switches."""
        return self.units * self.rails

    @property
    def pods(self) -> int:
        """The number of pods."""
        return math.ceil(self.units / self.units_per_pod)

    @property
    def tiers(self) -> int:
        """The number of switch tiers, from 1 to 3."""
        if self.units == 1:
            return 1
        return 2 if self.pods == 1 else 3

    @property
    def unit_gbps(self) -> float:
        """The rate of a unit's uplinks, one way."""
        return self.nodes_per_unit * self.node_gbps / self.leaf_taper

    @property
    def pod_gbps(self) -> float:
        """The rate of a pod's uplinks, one way."""
        return self.units_per_pod * self.unit_gbps / self.spine_taper

    @property
    def oversubscription(self) -> float:
        """The traffic of all nodes relative to the capacity of the highest tier: the product of the tapers."""
        return (1.0, self.leaf_taper, self.leaf_taper * self.spine_taper)[self.tiers - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """The number of switches per tier."""

    leaves: int
    spines: int
    cores: int

    @property
    def total(self) -> int:
        """The number of all switches."""
        return self.leaves + self.spines + self.cores


def plan_fabric(nodes: int, nics: int, nic_gbps: float, design: FabricDesign) -> Fabric:
    """The network of so many nodes with so many cards each, with the fewest possible tiers.

    If three tiers of such switches are too few, pods are larger than their ports allow. Raises ValueError if a switch
    has too few ports for one node.
    """
    ports = ports_of(design, nic_gbps)
    down, spine_down = (int(ports * taper / (1 + taper)) for taper in (design.leaf_taper, design.spine_taper))
    rails = nics if design.rail_optimised else 1
    nodes_per_unit = down * rails // nics
    if not nodes_per_unit:
        raise ValueError(f"a switch with {ports} x {nic_gbps:g} Gb/s has too few ports for {nics} cards")
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
    """The ports of a switch at the rate of a card: faster ports are split."""
    return int(design.switch_gbps / nic_gbps)


def count_switches(fabric: Fabric, ports: int) -> Switches:
    """The switches of the fabric, with so many ports each; every pod but a single one is fully built."""
    if fabric.tiers == 1:
        return Switches(leaves=fabric.leaves, spines=0, cores=0)
    uplinks = fabric.nodes_per_unit * fabric.nics / fabric.leaf_taper  # of a unit
    if fabric.tiers == 2:
        return Switches(leaves=fabric.leaves, spines=math.ceil(fabric.units * uplinks / ports), cores=0)
    below = fabric.units_per_pod * uplinks
    spines = math.ceil(below * (1 + 1 / fabric.spine_taper) / ports)
    cores = math.ceil(fabric.pods * below / fabric.spine_taper / ports)
    return Switches(leaves=fabric.leaves, spines=fabric.pods * spines, cores=cores)
