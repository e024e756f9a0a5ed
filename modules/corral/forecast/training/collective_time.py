"""The time of collectives, by formula from alpha and bandwidth, and from measured curves.

`alpha`: the fixed seconds per step. `rate`: bytes per second that a rank sends, one way. Formulas: Thakur et al. 2005
and NVIDIA/nccl-tests doc/PERFORMANCE.md, with its definitions of `n` and sizes.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import pairwise

from corral.catalog.accelerators.measured_collectives import MeasuredCurve


def ring_all_reduce_s(size: float, ranks: float, alpha: float, rate: float) -> float:
    """2 (n-1) alpha + 2 (n-1)/n M/B; `size` is the whole buffer, which each rank has."""
    return 2 * all_gather_s(size, ranks, alpha, rate)


def tree_all_reduce_s(size: float, ranks: float, alpha: float, rate: float) -> float:
    """2 log2(n) alpha + 2 M/B: a double binary tree, quicker than a ring for small messages among many."""
    return 2 * math.log2(ranks) * alpha + 2 * size / rate if ranks > 1 else 0.0


def all_gather_s(size: float, ranks: float, alpha: float, rate: float) -> float:
    """(n-1) alpha + (n-1)/n M/B; `size`: the result on each rank. A reduce-scatter takes as long."""
    return (ranks - 1) * alpha + (ranks - 1) / ranks * size / rate


def point_to_point_s(size: float, alpha: float, rate: float) -> float:
    """alpha + M/B."""
    return alpha + size / rate


def two_level_all_reduce_s(size: float, inside: float, across: float, link_rate: float, network_rate: float) -> float:
    """All-reduce over `across` nodes with `inside` ranks each, pipelined: the slower of its two parts.

    2(g-1)/g M/B_link in the node, 2(k-1)/k (M/g)/B_network between nodes, a rank's share each on its own rail.
    """
    links = 2 * (inside - 1) / inside * size / link_rate
    return max(links, 2 * (across - 1) / across * size / inside / network_rate)


def bus_bandwidth(size: float, ranks: float, seconds: float) -> float:
    """Bytes per second of an all-reduce, as nccl-tests prints them: 2 (n-1)/n M / t."""
    return 2 * (ranks - 1) / ranks * size / seconds


def measured_s(curve: MeasuredCurve, size: float) -> float:
    """Seconds for a message of this size, log-log interpolated between the measured points.

    Smaller messages take as long as the smallest point; larger ones have the bandwidth of the largest.
    """
    first, last = curve.points[0], curve.points[-1]
    if size <= first[0]:
        return first[1]
    if size >= last[0]:
        return last[1] * size / last[0]
    index = bisect_right([point[0] for point in curve.points], size)
    (low, low_s), (high, high_s) = list(pairwise(curve.points))[index - 1]
    part = math.log(size / low) / math.log(high / low)
    return low_s * math.pow(high_s / low_s, part)
