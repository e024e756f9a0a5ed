"""Assumptions about the network between machines. `forecast` applies them to a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from corral.catalog.loader.data_files import read_toml


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricDesign:
    """The design of a network. `switch_gbps`: all ports of a switch, one way; a taper of 1 means none."""

    switch_gbps: float
    leaf_taper: float
    spine_taper: float
    rail_optimised: bool
    source: str


@cache
def assumed_fabric() -> FabricDesign:
    """Return the design used in place of AWS's, which is not published."""
    return FabricDesign(**read_toml("fabric.toml")["assumed"])
