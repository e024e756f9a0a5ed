"""Which nodes an event concerns: by their names, or by the instances that were launched as them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from corral.model.node_names import expand
from corral.report.events import Happened


def by_node(events: Sequence[Happened]) -> Mapping[str, Sequence[Happened]]:
    """The events by the nodes that they concern, each node's in their order."""
    told: dict[str, list[Happened]] = defaultdict(list)
    node_of = _nodes_of_instances(events)
    for one in events:
        for node in _concerned(one, node_of):
            told[node].append(one)
    return told


def expanded(nodes: str) -> tuple[str, ...]:
    """Every name of a folded list; none where it is no list of nodes."""
    try:
        return expand(nodes)
    except ValueError:
        return ()


def _nodes_of_instances(events: Iterable[Happened]) -> Mapping[str, str]:
    """Which node each instance was launched as."""
    return {id: node for one in events if one.kind == "launched" for node, id in one.instances.items()}


def _concerned(one: Happened, node_of: Mapping[str, str]) -> tuple[str, ...]:
    """The nodes of an event: by their names, or by their instances. An end that found no machine ended none."""
    if one.kind in ("ended", "terminated", "returned") and one.instances:
        return tuple(sorted({node_of[id] for id in one.instances.values() if id in node_of}))
    return expanded(one.nodes)
