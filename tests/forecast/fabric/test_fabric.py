"""The planned network as numbers, compared with published designs and a small graph link by link."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from fabric_graph import links
from flow import largest_flow

from corral.catalog.accelerators.fabric import FabricDesign, assumed_fabric
from corral.forecast.fabric.bisection import bisection_gbps
from corral.forecast.fabric.topology import Fabric, Switches, count_switches, plan_fabric

QM9700 = FabricDesign(
    switch_gbps=64 * 400, leaf_taper=1, spine_taper=1, rail_optimised=True, source="64 ports of 400 Gb/s"
)
# Llama 3's RoCE cluster (arXiv:2407.21783, section 3.3.1): two nodes below a switch, 192 of them in a pod that is not
# tapered, eight pods, 1:7 above them.
LLAMA3 = Fabric(
    nodes=3072,
    nics=8,
    nic_gbps=400.0,
    rails=1,
    nodes_per_unit=2,
    units_per_pod=192,
    leaf_taper=1.0,
    spine_taper=7.0,
)
# Six nodes with two cards below each set of two leaves, two sets in a pod.
SMALL = Fabric(
    nodes=24, nics=2, nic_gbps=100.0, rails=2, nodes_per_unit=6, units_per_pod=2, leaf_taper=1.5, spine_taper=2.0
)
TREE = Fabric(
    nodes=16, nics=1, nic_gbps=100.0, rails=1, nodes_per_unit=2, units_per_pod=2, leaf_taper=1.0, spine_taper=1.0
)
PORTS = {SMALL: 10, TREE: 4}


def names(first: int, last: int) -> list[str]:
    return [f"node-{number}" for number in range(first, last)]


def test_a_whole_fat_tree_has_its_switches() -> None:
    assert count_switches(TREE, 4) == Switches(leaves=8, spines=8, cores=4)


@pytest.mark.parametrize(
    ("nodes", "leaves", "spines", "cores"),
    [
        (64, 16, 8, 0),
        (128, 32, 16, 0),
        (256, 64, 32, 0),
        (512, 128, 128, 64),
        (1024, 256, 256, 128),
        (2048, 512, 512, 256),
    ],
)
def test_superpod_has_the_switches_that_nvidia_publishes(nodes: int, leaves: int, spines: int, cores: int) -> None:
    # NVIDIA, DGX SuperPOD reference architecture with DGX B200, "Larger SuperPOD component counts".
    fabric = plan_fabric(nodes, 8, 400.0, QM9700)
    assert count_switches(fabric, 64) == Switches(leaves=leaves, spines=spines, cores=cores)


def test_a_superpod_has_a_bisection_of_half_its_cards() -> None:
    assert bisection_gbps(plan_fabric(2048, 8, 400.0, QM9700)) == 1024 * 3200


def test_the_cluster_of_llama_3_is_tapered_seven_times_above_its_pods() -> None:
    assert (LLAMA3.pods, LLAMA3.tiers, LLAMA3.oversubscription) == (8, 3, 7.0)
    assert bisection_gbps(LLAMA3) == pytest.approx(1536 * 3200 / 7)


def test_within_a_pod_of_llama_3_nothing_is_tapered() -> None:
    assert bisection_gbps(replace(LLAMA3, nodes=384)) == 192 * 3200


def test_bisection_of_32_p5_is_half_of_their_cards() -> None:
    # p5.48xlarge: 32 cards of 100 Gb/s; nodes x 200 GB/s by the upper bound of planner's facts.
    assert bisection_gbps(plan_fabric(32, 32, 100.0, assumed_fabric())) == 32 * 200 * 8


def test_smaller_half_of_an_odd_number_limits_bisection() -> None:
    assert bisection_gbps(plan_fabric(5, 8, 400.0, QM9700)) == 2 * 3200


def test_27500_nodes_have_three_tiers() -> None:
    fabric = plan_fabric(27_500, 32, 100.0, assumed_fabric())
    assert (fabric.tiers, fabric.units, fabric.leaves, fabric.pods) == (3, 108, 3456, 14)
    assert bisection_gbps(fabric) == pytest.approx(13_750 * 3200)


def test_leaf_without_rails_has_all_cards_of_a_few_nodes() -> None:
    fabric = plan_fabric(16, 8, 400.0, replace(QM9700, rail_optimised=False))
    assert (fabric.rails, fabric.nodes_per_unit, fabric.leaves) == (1, 4, 4)


def test_a_taper_leaves_more_ports_for_nodes() -> None:
    # 48 of 64 ports down, 16 up.
    fabric = plan_fabric(96, 8, 400.0, replace(QM9700, leaf_taper=3.0))
    assert (fabric.nodes_per_unit, fabric.units, fabric.oversubscription) == (48, 2, 3.0)


def test_switch_with_too_few_ports_for_a_node_is_an_error() -> None:
    with pytest.raises(ValueError, match="a switch with 4 x 400 Gb/s has too few ports for 8 cards"):
        plan_fabric(2, 8, 400.0, replace(QM9700, switch_gbps=1600, rail_optimised=False))


def test_network_too_large_for_three_tiers_has_larger_pods() -> None:
    assert plan_fabric(100_000, 8, 400.0, QM9700).pods == 64


def test_every_card_has_its_link() -> None:
    to_leaves = [link for link in links(SMALL, PORTS[SMALL]) if link.below.startswith("node")]
    assert (len(to_leaves), {link.gbps for link in to_leaves}) == (48, {100.0})


def test_a_fat_tree_has_as_many_links_in_every_tier() -> None:
    above = [link.above.partition("-")[0] for link in links(TREE, 4)]
    assert [above.count(tier) for tier in ("leaf", "spine", "core")] == [16, 16, 16]


@pytest.mark.parametrize("nodes", [2, 5, 6, 7, 9, 12, 13, 18, 20, 21, 24])
@pytest.mark.parametrize("rails", [1, 2])
def test_bisection_is_the_largest_flow_between_the_halves(nodes: int, rails: int) -> None:
    fabric = replace(SMALL, nodes=nodes, rails=rails)
    half = nodes // 2
    assert bisection_gbps(fabric) == pytest.approx(
        largest_flow(links(fabric, PORTS[SMALL]), names(0, half), names(half, nodes))
    )


def test_a_whole_fat_tree_is_not_tapered_link_by_link() -> None:
    assert largest_flow(links(TREE, 4), names(0, 8), names(8, 16)) == pytest.approx(800.0)


def test_no_other_halves_of_whole_units_have_a_lower_bisection() -> None:
    def flow(units: tuple[int, ...]) -> float:
        first = [name for unit in units for name in names(6 * unit, 6 * unit + 6)]
        return largest_flow(graph, first, [name for name in names(0, 24) if name not in first])

    graph = links(SMALL, PORTS[SMALL])
    assert min(flow(units) for units in combinations(range(4), 2)) == pytest.approx(bisection_gbps(SMALL))


def test_bisection_of_full_units_is_half_the_nodes_over_the_tapers() -> None:
    # 12 nodes of 200 Gb/s, tapered 1.5 x 2.
    assert bisection_gbps(SMALL) == pytest.approx(12 * 200 / 3)
