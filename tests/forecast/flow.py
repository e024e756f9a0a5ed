"""The largest flow between two sets of nodes of a small graph (Edmonds and Karp), to hold formulas against."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping

from corral.forecast.fabric.graph import Link

_LEAST = 1e-9


def largest_flow(links: Iterable[Link], sources: Iterable[str], sinks: Iterable[str]) -> float:
    """How much all sources can send to all sinks at once; every link carries its rate each way."""
    room: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for link in links:
        room[link.below][link.above] += link.gbps
        room[link.above][link.below] += link.gbps
    for node in sources:
        room["from"][node] = float("inf")
    for node in sinks:
        room[node]["to"] = float("inf")
    flow = 0.0
    while came_from := _path(room):
        steps, at = [], "to"
        while at != "from":
            steps.append((came_from[at], at))
            at = came_from[at]
        more = min(room[begin][end] for begin, end in steps)
        for begin, end in steps:
            room[begin][end] -= more
            room[end][begin] += more
        flow += more
    return flow


def _path(room: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """Where each place was reached from on a shortest way to the end; nothing where there is no way."""
    came_from, waiting = {"from": ""}, deque(["from"])
    while waiting:
        at = waiting.popleft()
        for end, left in list(room[at].items()):
            if left > _LEAST and end not in came_from:
                came_from[end] = at
                waiting.append(end)
    return came_from if "to" in came_from else {}
