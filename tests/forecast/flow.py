"""The maximum flow between two sets of nodes of a small graph (Edmonds and Karp), to check formulas."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping

from fabric_graph import Link

_LEAST = 1e-9


def largest_flow(links: Iterable[Link], sources: Iterable[str], sinks: Iterable[str]) -> float:
    """The maximum rate from all sources to all sinks; every link carries its rate each way."""
    capacity: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for link in links:
        capacity[link.below][link.above] += link.gbps
        capacity[link.above][link.below] += link.gbps
    for node in sources:
        capacity["from"][node] = float("inf")
    for node in sinks:
        capacity[node]["to"] = float("inf")
    flow = 0.0
    while came_from := _path(capacity):
        steps, at = [], "to"
        while at != "from":
            steps.append((came_from[at], at))
            at = came_from[at]
        more = min(capacity[begin][end] for begin, end in steps)
        for begin, end in steps:
            capacity[begin][end] -= more
            capacity[end][begin] += more
        flow += more
    return flow


def _path(capacity: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """The predecessor of each vertex on a shortest path to the end; empty without a path."""
    came_from, waiting = {"from": ""}, deque(["from"])
    while waiting:
        at = waiting.popleft()
        for end, left in list(capacity[at].items()):
            if left > _LEAST and end not in came_from:
                came_from[end] = at
                waiting.append(end)
    return came_from if "to" in came_from else {}
