"""What is assumed of the network that joins machines. What a cluster makes of it is a forecast's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from corral.catalog.tables import read_toml


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricDesign:
    """How a network is built. `switch_gbps`: of all ports of a switch, one way; a taper of 1 is none."""

    switch_gbps: float
    leaf_taper: float
    spine_taper: float
    rail_optimised: bool
    source: str


@cache
def assumed_fabric() -> FabricDesign:
    """The design that stands in for AWS's, which is not published."""
    return FabricDesign(**read_toml("fabric.toml")["assumed"])
