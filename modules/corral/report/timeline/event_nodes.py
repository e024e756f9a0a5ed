"""The nodes that an event concerns: by their names, or by their instances. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from corral.model.node_names import expand
from corral.report.timeline.event_lines import ClusterEvent


def by_node(events: Sequence[ClusterEvent]) -> Mapping[str, Sequence[ClusterEvent]]:
    """The events by node, in order."""
    found: dict[str, list[ClusterEvent]] = defaultdict(list)
    node_of = _nodes_of_instances(events)
    for one in events:
        for node in _concerned(one, node_of):
            found[node].append(one)
    return found


def expanded(nodes: str) -> tuple[str, ...]:
    """The names of a folded list; empty if it is not a list of nodes."""
    try:
        return expand(nodes)
    except ValueError:
        return ()


def _nodes_of_instances(events: Iterable[ClusterEvent]) -> Mapping[str, str]:
    """The node that each instance was launched as."""
    return {id: node for one in events if one.kind == "launched" for node, id in one.instances.items()}


def _concerned(one: ClusterEvent, node_of: Mapping[str, str]) -> tuple[str, ...]:
    """The nodes of an event: by their names, or by their instances. An end of unknown instances concerns none."""
    if one.kind in ("ended", "terminated", "released") and one.instances:
        return tuple(sorted({node_of[id] for id in one.instances.values() if id in node_of}))
    return expanded(one.nodes)
