"""Bisection bandwidth: what half of the nodes can send to the other half at once, without a graph of links.

The halves are the first and the last nodes in the order of leaves and pods. In a tree, traffic between
nodes of a leaf stays there, other traffic of a pod stays in the pod, and only the rest crosses the core.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from corral.forecast.fabric.topology import Fabric


@dataclass(frozen=True, slots=True, kw_only=True)
class _Alike:
    """`count` equal blocks with `first` elements of the first half and `last` of the other."""

    count: int
    first: int
    last: int


def bisection_gbps(fabric: Fabric) -> float:
    """Gb/s one way between the halves. With full units it is nodes/2 x node rate / oversubscription.

    Source: the planner's rule for fat trees (hosts/2 x link rate, Al-Fares et al. 2008), divided by the taper.
    """
    inside, leaving, arriving = 0.0, 0.0, 0.0
    half, pod_nodes = fabric.nodes // 2, fabric.units_per_pod * fabric.nodes_per_unit
    for pod in _blocks(half, fabric.nodes - half, pod_nodes):
        met, out, into = _pod(fabric, pod)
        inside += pod.count * met
        leaving += pod.count * min(out, fabric.pod_gbps)
        arriving += pod.count * min(into, fabric.pod_gbps)
    return inside + min(leaving, arriving)


def _pod(fabric: Fabric, pod: _Alike) -> tuple[float, float, float]:
    """The traffic within one such pod, to the other half, and from there."""
    met, out, into = 0.0, 0.0, 0.0
    for unit in _blocks(pod.first, pod.last, fabric.nodes_per_unit):
        both = min(unit.first, unit.last)
        met += unit.count * both * fabric.node_gbps
        out += unit.count * min((unit.first - both) * fabric.node_gbps, fabric.unit_gbps)
        into += unit.count * min((unit.last - both) * fabric.node_gbps, fabric.unit_gbps)
    meeting = min(out, into)
    return met + meeting, out - meeting, into - meeting


def _blocks(first: int, last: int, size: int) -> Iterator[_Alike]:
    """`first` elements and then `last` other ones, in blocks of this size; at most four kinds of blocks."""
    whole, rest = divmod(first, size)
    if whole:
        yield _Alike(count=whole, first=size, last=0)
    if rest:
        shared = min(size - rest, last)
        yield _Alike(count=1, first=rest, last=shared)
        last -= shared
    whole, rest = divmod(last, size)
    if whole:
        yield _Alike(count=whole, first=0, last=size)
    if rest:
        yield _Alike(count=1, first=0, last=rest)
