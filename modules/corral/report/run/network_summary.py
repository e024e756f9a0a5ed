"""The network of a declared run as text and rows, shared by the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator

from corral.forecast.fabric.nic_failures import TwoLeaves
from corral.forecast.fabric.run_network import NetworkOutlook
from corral.forecast.fabric.topology import Fabric

_TIERS = {1: "leaves only", 2: "leaves and spines", 3: "leaves, spines and a core"}


def network_facts(network: NetworkOutlook) -> Iterator[tuple[str, str]]:
    """The topology, the bisection, the all-reduce of the gradients, and the effects of failures."""
    fabric, switches = network.fabric, network.switches
    yield "cards", f"{fabric.nics} x {fabric.nic_gbps:g} Gb/s per node, {_rails(fabric)}"
    below = f"up to {fabric.nodes_per_unit:,} nodes below {_leaves(fabric)}"
    yield "switches", f"{switches.total:,}, {_TIERS[fabric.tiers]}; {below}"
    yield "bisection", f"{_rate(network.bisection_gbps / 8)} each way between two halves of the nodes"
    yield "taper", _taper(fabric.oversubscription)
    yield from _reduced(network)
    yield "failed card", _lost(network)
    yield "two leaves", f"{_times(network.two_leaves)}; {_crossing(network.two_leaves)}"
    yield "", f"with a taper of {network.two_tapered_leaves.taper:g} : 1: {_times(network.two_tapered_leaves)}"


def algorithm_rows(network: NetworkOutlook) -> Iterator[tuple[str, str, str]]:
    """The all-reduce of the gradients by each algorithm: seconds and bus bandwidth."""
    for one in network.gradients:
        yield one.algorithm.value, f"{one.seconds:.3g}", f"{one.bus_bandwidth / 1e9:,.1f}"


def _rate(gb_per_s: float) -> str:
    return f"{gb_per_s:,.3g} GB/s" if gb_per_s < 1000 else f"{gb_per_s / 1000:,.1f} TB/s"


def _rails(fabric: Fabric) -> str:
    return f"each on its own of {fabric.rails} rails" if fabric.rails > 1 else "on one rail"


def _leaves(fabric: Fabric) -> str:
    return f"the same {fabric.rails} leaves" if fabric.rails > 1 else "a leaf"


def _taper(oversubscription: float) -> str:
    if oversubscription == 1:
        return "none: all nodes can send at full rate at once"
    return f"{oversubscription:g} : 1, traffic of all nodes to capacity of the highest tier"


def _reduced(network: NetworkOutlook) -> Iterator[tuple[str, str]]:
    if not network.gradients:
        yield "gradients", "no exchange: one rank has the whole batch"
        return
    group = network.group
    among = f"among {group.ranks:,.0f} ranks on {group.across:,.0f} nodes" if group.across > 1 else "within a node"
    what = "per rank, without its experts" if network.mixture else "per rank"
    yield "gradients", f"{network.gradients[0].size / 1e9:,.1f} GB {what}, reduced {among}"


def _lost(network: NetworkOutlook) -> str:
    lost, best, worst = network.lost, network.spread, network.pinned
    if lost is None or best is None or worst is None:
        return "a failed node, since it has only one card"
    times = f"all nodes wait: network time x {lost.spread:.2f} to x {lost.pinned:.2f}"
    reduced = ""
    if best.all_reduce_s and worst.all_reduce_s and network.group.across > 1:
        reduced = f", {best.all_reduce_s:.3g} to {worst.all_reduce_s:.3g} s for the gradients"
    return f"{times}{reduced}; the run keeps {best.speed:.1%} to {worst.speed:.1%} of its speed"


def _times(leaves: TwoLeaves) -> str:
    low, high = leaves.in_order_times, leaves.at_random_times
    if high <= 1:
        return "as fast as one"
    return f"{low:.1f} times slower with ranks in order, {high:.1f} times in random order"


def _crossing(leaves: TwoLeaves) -> str:
    in_order, at_random = f"{leaves.in_order:.1%}", f"{leaves.at_random:.0%}"
    return f"{in_order} of a ring's steps cross leaves with ranks in order, {at_random} in random order"
