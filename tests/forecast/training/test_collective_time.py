"""Times of collectives compared with hand-worked values and measurements over EFA."""

from __future__ import annotations

import pytest

from corral.catalog.accelerators.accelerators import find_accelerator
from corral.catalog.accelerators.measured_collectives import find_curve
from corral.forecast.training.collective_time import (
    all_gather_s,
    bus_bandwidth,
    measured_s,
    point_to_point_s,
    ring_all_reduce_s,
    tree_all_reduce_s,
    two_level_all_reduce_s,
)
from corral.forecast.training.interconnect import RankGroup, links_of

MIB = 2**20
P4DE, P5, B200 = (
    find_curve(f"{name}.48xlarge" if name != "p4de" else "p4de.24xlarge") for name in ("p4de", "p5", "p6-b200")
)
A100 = links_of(find_accelerator("A100-80"), 200)
H100 = links_of(find_accelerator("H100-80"), 400)


def test_a_gigabyte_around_a_ring_of_16_at_400_gbps() -> None:
    assert ring_all_reduce_s(1e9, 16, 0.0, 50e9) == pytest.approx(37.5e-3)


def test_a_ring_has_two_steps_for_each_rank_but_one() -> None:
    assert ring_all_reduce_s(0, 16, 1e-6, 1.0) == pytest.approx(30e-6)


def test_a_tree_has_two_steps_for_each_doubling() -> None:
    assert tree_all_reduce_s(0, 1024, 1e-6, 1.0) == pytest.approx(20e-6)


def test_a_tree_moves_the_buffer_twice() -> None:
    assert tree_all_reduce_s(1e9, 16, 0.0, 50e9) == pytest.approx(40e-3)


def test_one_rank_sends_nothing() -> None:
    assert (ring_all_reduce_s(1e9, 1, 1e-6, 1.0), tree_all_reduce_s(1e9, 1, 1e-6, 1.0)) == (0.0, 0.0)


def test_a_gather_is_half_an_all_reduce() -> None:
    assert all_gather_s(8e9, 8, 1e-6, 100e9) == pytest.approx(7e-6 + 70e-3)


def test_a_message_takes_its_latency_and_its_bytes() -> None:
    assert point_to_point_s(1e6, 1e-5, 1e9) == pytest.approx(1.01e-3)


@pytest.mark.parametrize(
    ("nodes", "link", "network", "gb_per_s"),
    [
        (2, 450e9, 50e9, 257),  # p5: its NVLink part
        (2, 300e9, 6.25e9, 50),  # p4de: its network part
        (4, 900e9, 50e9, 267),  # p6-b200: its network part
    ],
)
def test_two_levels_take_the_longer_part(nodes: int, link: float, network: float, gb_per_s: float) -> None:
    assert 1 / two_level_all_reduce_s(1.0, 8, nodes, link, network) / 1e9 == pytest.approx(gb_per_s, rel=2e-3)


@pytest.mark.parametrize(
    ("curve", "size", "busbw"), [(P4DE, 2**31, 78.3), (P5, 2**31, 443.7), (P5, 2**34, 487), (B200, 2**34, 377)]
)
def test_bus_bandwidth_is_the_printed_one(curve: object, size: int, busbw: float) -> None:
    seconds = measured_s(curve, size)  # type: ignore[arg-type]
    assert bus_bandwidth(size, curve.ranks, seconds) / 1e9 == pytest.approx(busbw, rel=2e-3)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("size", "us"), [(8, 69), (64 * 1024, 135), (32 * MIB, 440)])
def test_a_measured_size_has_its_measured_time(size: int, us: float) -> None:
    assert measured_s(P5, size) * 1e6 == pytest.approx(us)


def test_time_between_two_sizes_is_their_geometric_mean() -> None:
    assert measured_s(P4DE, 64 * MIB) * 1e6 == pytest.approx((1540 * 3913) ** 0.5)


def test_small_messages_take_as_long_as_the_smallest() -> None:
    assert measured_s(P5, 1) == 69e-6


def test_large_messages_have_the_bandwidth_of_the_largest() -> None:
    assert measured_s(P5, 2**35) == pytest.approx(2 * 66132e-6)


@pytest.mark.parametrize("size", [64 * MIB, 100 * MIB, 512 * MIB, 2048 * MIB])
def test_curve_of_p4de_is_near_its_fit(size: int) -> None:
    assert measured_s(P4DE, size) == pytest.approx(1015e-6 + 1.875 * size / 81e9, rel=0.06)


def test_a_large_message_reaches_86_percent_of_p4de() -> None:
    assert A100.network_share(2**31) == pytest.approx(0.835, abs=0.03)


def test_small_messages_reach_little() -> None:
    assert A100.network_share(64 * 1024) < 0.03


def test_neighbours_are_in_one_domain() -> None:
    assert [A100.group(ranks, stride) for ranks, stride in ((8, 1), (16, 1), (16, 8), (64, 4))] == [
        RankGroup(inside=8, across=1),
        RankGroup(inside=8, across=2),
        RankGroup(inside=1, across=16),
        RankGroup(inside=2, across=32),
    ]


def test_group_within_a_node_uses_its_links() -> None:
    assert H100.all_gather_s(8e9, RankGroup(inside=8, across=1)) == pytest.approx(7 * 5e-6 + 7e9 / 360e9)


def test_group_across_nodes_uses_a_card_per_part() -> None:
    size, group = 80e9, RankGroup(inside=8, across=4)
    expected = 0.75 * 10e9 / (50e9 * H100.network_share(size)) + 20e-6
    assert H100.all_gather_s(size, group) == pytest.approx(expected)


def test_rings_over_one_card_at_a_time_take_eight_times_as_long_and_more() -> None:
    group = RankGroup(inside=8, across=64)
    ratio = A100.single_card_all_gather_s(4e9, group) / A100.all_gather_s(4e9, group)
    assert 8 < ratio < 12


def test_tokens_are_sent_to_a_node_once_if_libraries_support_it() -> None:
    group = RankGroup(inside=8, across=4)
    once, each = (H100.all_to_all_s(100e6, 8, group, once_a_node=once) for once in (True, False))
    steps = 7 * 5e-6 + 3 * 20e-6
    assert (once - steps, each - steps) == (
        pytest.approx(0.75 * 4 * 100e6 / 30e9),
        pytest.approx(0.75 * 8 * 100e6 / 30e9),
    )
