"""The network of a declared run, as a part of the document of `corral plan --run --json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from corral.forecast.fabric.all_reduce import AllReduce
from corral.forecast.fabric.outlook import NetworkOutlook

_BITS = 8


def network_document(network: NetworkOutlook) -> Mapping[str, Any]:
    """In bytes and seconds; rates are one way, `..._times` multiples of what it takes without."""
    fabric = network.fabric
    return {
        "assumed": network.design.source,
        "cards_of_a_node": fabric.nics,
        "card_bytes_per_s": fabric.nic_gbps * 1e9 / _BITS,
        "rails": fabric.rails,
        "tiers": fabric.tiers,
        "nodes_of_a_unit": fabric.nodes_per_unit,
        "units": fabric.units,
        "pods": fabric.pods,
        "switches": asdict(network.switches),
        "oversubscription": fabric.oversubscription,
        "bisection_bytes_per_s": network.bisection_gbps * 1e9 / _BITS,
        "gradients": {
            "bytes": network.gradients[0].size if network.gradients else 0.0,
            "ranks": network.group.ranks,
            "nodes": network.group.across,
            "all_reduce": [_all_reduce(one) for one in network.gradients],
        },
        "lost_card": _lost_card(network),
        "two_leaves": [asdict(network.two_leaves), asdict(network.two_tapered_leaves)],
        "all_reduce": [{"bytes": row[0].size, "by": [_all_reduce(one) for one in row]} for row in network.curves],
        "measured": {
            "instance_type": network.measured.fabric,
            "ranks": network.measured.ranks,
            "points": [{"bytes": size, "s": seconds} for size, seconds in network.measured.points],
        },
    }


def _lost_card(network: NetworkOutlook) -> Mapping[str, Any] | None:
    if network.lost is None or network.spread is None or network.kept_apart is None:
        return None
    return {
        "spread": {"times": network.lost.spread, **asdict(network.spread)},
        "kept_apart": {"times": network.lost.kept_apart, **asdict(network.kept_apart)},
    }


def _all_reduce(one: AllReduce) -> Mapping[str, Any]:
    return {"algorithm": one.algorithm.value, "s": one.seconds, "bus_bytes_per_s": one.bus_bandwidth}
