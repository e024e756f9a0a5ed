"""All-reduce by algorithm, a failed card, a job under two leaves: hand-worked and measured values."""

from __future__ import annotations

import pytest
from declared_runs import run

from corral.catalog.accelerators.accelerators import find_accelerator
from corral.forecast.fabric.all_reduce import Algorithm, all_reduce_curves, all_reduces
from corral.forecast.fabric.nic_failures import FailedCard, failed_card, over_two_leaves
from corral.forecast.fabric.run_network import NetworkOutlook, network_outlook
from corral.forecast.training.interconnect import AcceleratorLinks, RankGroup, links_of
from corral.forecast.training.run_forecast import forecast_run

H100 = links_of(find_accelerator("H100-80"), 400)
TWO_NODES = RankGroup(inside=8, across=2)
SIXTEEN = RankGroup(inside=8, across=16)


def seconds(size: float, group: RankGroup, machine: AcceleratorLinks = H100) -> dict[str, float]:
    return {one.algorithm: one.seconds for one in all_reduces(size, machine, group)}


@pytest.fixture(scope="module")
def small() -> NetworkOutlook:
    """8B on 16 machines with 32 cards each, CP 2 x DP 64."""
    forecast = forecast_run(run("llama3-8b", 16))
    found = network_outlook(forecast.run, forecast.job)
    assert found is not None
    return found


def test_a_ring_over_nodes_takes_the_slower_of_link_and_cards() -> None:
    # 128 ranks; 360 GB/s of NVLink in a node, less than eight cards of 50 GB/s. 254 steps, an eighth of them between
    # nodes: 254 x (16 x 20 + 112 x 5) us / 128 = 1.74625 ms.
    assert seconds(1e9, SIXTEEN)["ring"] == pytest.approx(2 * 127 / 128 * 1e9 / 360e9 + 1.74625e-3)


def test_a_gigabyte_over_single_cards_takes_37_5_ms_and_its_steps() -> None:
    # 16 ranks at 400 Gb/s, 30 steps of 20 us.
    assert seconds(1e9, RankGroup(inside=1, across=16))["ring"] == pytest.approx(37.5e-3 + 0.6e-3)


def test_a_tree_has_two_steps_for_each_doubling_of_nodes_and_two_chains() -> None:
    # 2 x 4 x 20 us between nodes, 2 x 7 x 5 us in each.
    assert seconds(1e9, SIXTEEN)["tree"] == pytest.approx(2e9 / 360e9 + 160e-6 + 70e-6)


def test_two_levels_take_the_longer_part_and_the_steps_of_both() -> None:
    # Links: 2 x 7/8 / 360 GB/s, more than 2 x 15/16 / 8 / 50 GB/s; 14 steps of 5 us, 30 of 20 us.
    assert seconds(1e9, SIXTEEN)["hierarchical"] == pytest.approx(1.75e9 / 360e9 + 70e-6 + 600e-6)


def test_measured_line_is_what_the_forecast_uses() -> None:
    assert seconds(1e9, SIXTEEN)["measured share"] == H100.all_reduce_s(1e9, SIXTEEN)


def test_one_node_has_no_measured_line() -> None:
    assert list(seconds(1e9, RankGroup(inside=8, across=1))) == ["ring", "tree", "hierarchical"]


def test_hierarchical_on_one_node_is_a_ring() -> None:
    alone = seconds(1e9, RankGroup(inside=8, across=1))
    assert alone["hierarchical"] == alone["ring"]


def test_one_rank_reduces_nothing() -> None:
    assert all_reduces(1e9, H100, RankGroup(inside=1, across=1)) == ()


def test_tree_is_best_for_small_messages_and_hierarchical_for_large_ones() -> None:
    formulas = [Algorithm.RING, Algorithm.TREE, Algorithm.HIERARCHICAL]
    rows = [{one.algorithm: one.seconds for one in row} for row in all_reduce_curves(H100, SIXTEEN, (2**16, 2**34))]
    assert [min(formulas, key=row.__getitem__) for row in rows] == ["tree", "hierarchical"]


def test_bus_bandwidth_of_a_large_message_is_that_of_the_slowest_part() -> None:
    (ring, *_) = all_reduces(2**40, H100, TWO_NODES)
    assert ring.bus_bandwidth == pytest.approx(360e9, rel=1e-3)


@pytest.mark.parametrize(
    ("cards", "ranks", "lost"),
    [
        (32, 8, FailedCard(spread=32 / 31, pinned=4 / 3)),  # p5
        (16, 8, FailedCard(spread=16 / 15, pinned=2.0)),  # p5en
        (8, 8, FailedCard(spread=8 / 7, pinned=2.0)),  # p6-b200
        (4, 8, FailedCard(spread=4 / 3, pinned=2.0)),  # p4d: a card for two
        (1, 1, None),
    ],
)
def test_failed_card_slows_all_nodes(cards: int, ranks: int, lost: FailedCard | None) -> None:
    assert failed_card(cards, ranks) == lost


def test_three_failed_cards_of_a_p4d_cost_as_measured() -> None:
    # 77.9 GB/s with four cards, 20.3 with one (awslabs nccl-tests README): 3.84 times; cards one after the other, 4.
    lost = [found.spread for cards in (4, 3, 2) if (found := failed_card(cards, 8))]
    assert lost[0] * lost[1] * lost[2] == pytest.approx(77.9 / 20.3, rel=0.05)


def test_ranks_in_order_cross_leaves_once_per_leaf() -> None:
    assert (over_two_leaves(16, 4.0).in_order, over_two_leaves(16, 4.0).in_order_times) == (2 / 16, 1.0)


def test_ranks_in_random_order_cross_leaves_in_over_half_of_the_steps() -> None:
    # 8 x 8/15 of 8 nodes on each leaf, whose uplinks carry 2 node rates.
    found = over_two_leaves(16, 4.0)
    assert (found.at_random, found.at_random_times) == (pytest.approx(8 / 15), pytest.approx(64 / 15 / 2))


def test_without_a_taper_two_leaves_are_as_fast_as_one() -> None:
    found = over_two_leaves(2048, 1.0)
    assert (found.in_order_times, found.at_random_times) == (1.0, 1.0)


def test_gradients_of_a_run_are_four_bytes_per_parameter_of_a_rank(small: NetworkOutlook) -> None:
    # All of 8B, including both embeddings: 8.0303e9.
    assert (small.group, small.gradients[0].size) == (
        RankGroup(inside=8, across=16),
        pytest.approx(4 * 8.0303e9, rel=1e-3),
    )


def test_failed_card_costs_nothing_while_links_are_slower(small: NetworkOutlook) -> None:
    by = {one.algorithm: one.seconds for one in small.gradients}
    assert small.spread is not None
    assert small.spread.all_reduce_s == by[Algorithm.HIERARCHICAL]


def test_pinned_cards_become_slower_than_the_links(small: NetworkOutlook) -> None:
    size = small.gradients[0].size
    assert small.pinned is not None
    assert small.pinned.all_reduce_s == pytest.approx(2 * 15 / 16 * size / 8 / 37.5e9 + 670e-6)


def test_a_run_whose_gradients_hide_behind_its_work_loses_little_speed(small: NetworkOutlook) -> None:
    assert small.pinned is not None
    assert 0.98 < small.pinned.speed < 1


def test_a_run_that_waits_for_the_network_slows_with_it() -> None:
    # Weights are gathered for each layer, over cards at half the rate.
    zero3 = run("llama3-70b", 16, instance_type="p4de.24xlarge", layout={"sharding": "zero3", "recompute": "full"})
    forecast = forecast_run(zero3)
    found = network_outlook(forecast.run, forecast.job)
    assert found is not None
    assert found.pinned is not None
    assert found.pinned.speed < 0.9


def test_one_node_has_no_network() -> None:
    forecast = forecast_run(run("llama3-8b", 1))
    assert network_outlook(forecast.run, forecast.job) is None
