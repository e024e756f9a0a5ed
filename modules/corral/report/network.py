"""The network of a declared run in words and rows, for the terminal and the page alike."""

from __future__ import annotations

from collections.abc import Iterator

from corral.forecast.fabric.faults import TwoLeaves
from corral.forecast.fabric.outlook import NetworkOutlook
from corral.forecast.fabric.plan import Fabric

_TIERS = {1: "leaves alone", 2: "leaves and spines", 3: "leaves, spines and a core"}


def network_facts(network: NetworkOutlook) -> Iterator[tuple[str, str]]:
    """What it is, what halves of the nodes exchange, what the run reduces on it, what goes wrong."""
    fabric, switches = network.fabric, network.switches
    yield "cards", f"{fabric.nics} of {fabric.nic_gbps:g} Gb/s in a node, {_rails(fabric)}"
    below = f"up to {fabric.nodes_per_unit:,} nodes below {_leaves(fabric)}"
    yield "switches", f"{switches.total:,}, {_TIERS[fabric.tiers]}; {below}"
    yield "bisection", f"{_rate(network.bisection_gbps / 8)} each way between two halves of the nodes"
    yield "taper", _taper(fabric.oversubscription)
    yield from _reduced(network)
    yield "a card less", _lost(network)
    yield "two leaves", f"{_times(network.two_leaves)}; {_crossing(network.two_leaves)}"
    yield "", f"tapered {network.two_tapered_leaves.taper:g} : 1 they would be {_times(network.two_tapered_leaves)}"


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
        return "none: all nodes may send at once"
    return f"{oversubscription:g} : 1, what nodes send of what the highest switches let through"


def _reduced(network: NetworkOutlook) -> Iterator[tuple[str, str]]:
    if not network.gradients:
        yield "gradients", "none are exchanged: one rank has the whole batch"
        return
    group = network.group
    among = f"among {group.ranks:,.0f} ranks on {group.across:,.0f} nodes" if group.across > 1 else "within a node"
    what = "of each rank, without its experts'" if network.mixture else "of each rank"
    yield "gradients", f"{network.gradients[0].size / 1e9:,.1f} GB {what}, reduced {among}"


def _lost(network: NetworkOutlook) -> str:
    lost, best, worst = network.lost, network.spread, network.kept_apart
    if lost is None or best is None or worst is None:
        return "is a node less: it is the only one"
    times = f"all wait: {lost.spread:.2f} to {lost.kept_apart:.2f} times what the network takes"
    reduced = ""
    if best.all_reduce_s and worst.all_reduce_s and network.group.across > 1:
        reduced = f", {best.all_reduce_s:.3g} to {worst.all_reduce_s:.3g} s for the gradients"
    return f"{times}{reduced}; the run keeps {best.speed:.1%} to {worst.speed:.1%} of its speed"


def _times(leaves: TwoLeaves) -> str:
    low, high = leaves.in_order_times, leaves.at_random_times
    if high <= 1:
        return "as fast as one"
    return f"{low:.1f} times as slow with ranks in order, {high:.1f} at random"


def _crossing(leaves: TwoLeaves) -> str:
    return f"{leaves.in_order:.1%} of a ring's steps cross where ranks are in order, {leaves.at_random:.0%} at random"
