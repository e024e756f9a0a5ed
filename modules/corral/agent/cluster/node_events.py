"""Events of nodes, derived from Slurm's view before and now. Pure, except `log_new_events`.

Nodes cannot write to the head's volume. A node with a spot notice sets its comment in Slurm, and slurmctld knows when
each slurmd started. The autoscaler compares the views at every reconciliation, and logs when the event happened.
"""

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from corral.agent.cluster.models import Instance, SlurmNode
from corral.agent.events import Event, EventLog, timestamp
from corral.model.node_names import fold

_OF_NODES = (Event.UP, Event.NOTICE, Event.DRAINED)
_NOTICE_START = "corral: notice at "
_NOTICE = re.compile(rf"{_NOTICE_START}(\S+), ends at (\S+)")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSnapshot:
    """The last view of a node: when its last known slurmd started (empty: none), its comment, whether it drains."""

    started: str
    comment: str
    draining: bool


_NEVER = NodeSnapshot(started="", comment="", draining=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEvent:
    """An event of a node. `at`: in seconds since 1970; None if the time is unknown and the event was just seen."""

    event: Event
    node: str
    text: str
    at: float | None
    facts: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """The node events that earlier processes logged: each with its node and its time, or its reason without a time.

    `since`: the time of the first line; lines with older events may be gone.
    """

    since: float = 0.0
    marks: frozenset[tuple[str, str, str]] = frozenset()

    def has(self, news: NodeEvent) -> bool:
        """Whether this event is already logged."""
        if news.at is None:
            return (str(news.event), news.node, str(news.facts["reason"])) in self.marks
        return news.at < self.since or (str(news.event), news.node, timestamp(news.at)) in self.marks


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the autoscaler saw last, and the node events that earlier processes logged.

    `unreadable`: the nodes with a comment that is no notice, see `unreadable_notices`.
    """

    seen: Mapping[str, NodeSnapshot]
    reported: Reported
    unreadable: frozenset[str] = frozenset()


def notice_comment(noticed: datetime, end: datetime) -> str:
    """The comment that a node with a spot notice sets in Slurm."""
    return f"corral: notice at {noticed:%Y-%m-%dT%H:%M:%SZ}, ends at {end:%Y-%m-%dT%H:%M:%SZ}"


def seen_now(before: Mapping[str, NodeSnapshot], nodes: Sequence[SlurmNode]) -> Mapping[str, NodeSnapshot]:
    """The snapshots of nodes, after `before`. Nodes that never had a machine or a comment are left out.

    The start of the last slurmd is never dropped: after its own restart slurmctld may report a running node as down or
    powered off without a start time, and later as before.
    """
    found = {node.name: _seen(before.get(node.name, _NEVER), node) for node in nodes}
    has_machine = {node.name for node in nodes if node.wants_machine}
    return {name: seen for name, seen in found.items() if name in has_machine or seen.comment or seen.started}


def _seen(was: NodeSnapshot, node: SlurmNode) -> NodeSnapshot:
    has_begun = node.registered and _local(node.started) is not None
    return NodeSnapshot(
        started=node.started if has_begun else was.started,
        comment=node.comment,  # it outlives the machine, which may end before the next reconciliation
        draining=node.wants_machine and "DRAIN" in node.states,
    )


def new_events(
    before: Mapping[str, NodeSnapshot], nodes: Sequence[SlurmNode], shown: Sequence[Instance], zone_s: float
) -> Iterator[NodeEvent]:
    """The events since `before`. `zone_s`: the UTC offset of the local time that Slurm prints."""
    launched = {one.node: one for one in shown if one.active}
    now = seen_now(before, nodes)
    for node in nodes:
        held, was = now.get(node.name), before.get(node.name, _NEVER)
        if held is None:
            continue
        if held.started != was.started and (began := _local(held.started)) is not None:
            yield _up(node.name, began - zone_s, launched.get(node.name))
        if held.comment != was.comment and (times := _notice(held.comment)):
            at, end = times
            text = f"{node.name} is reclaimed at {end:%H:%M:%S} UTC"
            facts = {"ends": timestamp(end.timestamp())}
            yield NodeEvent(event=Event.NOTICE, node=node.name, text=text, at=at.timestamp(), facts=facts)
        if held.draining and not was.draining:
            reason = node.reason or "no reason given"
            yield NodeEvent(
                event=Event.DRAINED, node=node.name, text=f"{node.name}: {reason}", at=None, facts={"reason": reason}
            )


def unreadable_notices(nodes: Iterable[SlurmNode]) -> frozenset[str]:
    """The nodes whose comment begins as a notice and is none: anybody who administers Slurm may set it."""
    return frozenset(
        node.name for node in nodes if node.comment.startswith(_NOTICE_START) and _notice(node.comment) is None
    )


def log_new_events(
    journal: EventLog,
    last: Observation | None,
    nodes: Sequence[SlurmNode],
    shown: Sequence[Instance],
    *,
    zone_s: float,
) -> Observation:
    """Log the events since the last observation, and return this one.

    The first observation of a process (None) logs the events that earlier processes have not written to the file.
    Events with a time are compared with theirs later too: a new slurmctld may not know them at first.
    """
    before, reported = (last.seen, last.reported) if last else ({}, reported_in(journal.lines()))
    for one in new_events(before, nodes, shown, zone_s):
        if not reported.has(one):
            journal.log_event(one.event, one.text, at=one.at, nodes=one.node, **one.facts)
    unreadable = unreadable_notices(nodes)
    if unreadable - (last.unreadable if last else frozenset()):
        log.warning("ignored %d comments that are not notices: %s", len(unreadable), fold(unreadable))
    reported = reported if last else _of_times(reported)
    return Observation(seen=seen_now(before, nodes), reported=reported, unreadable=unreadable)


def reported_in(lines: Iterable[str]) -> Reported:
    """The node events in the lines of an event log. Truncated lines are skipped."""
    since, marks = 0.0, set[tuple[str, str, str]]()
    for line in lines:
        # Most lines of a long log have other events; skip parsing them.
        if since and not any(f'"event": "{event}"' in line for event in _OF_NODES):
            continue
        with suppress(ValueError, KeyError, TypeError):
            held = json.loads(line)
            since = since or _utc(held["at"]).timestamp()
            if held["event"] in _OF_NODES:
                marks.add((held["event"], held["nodes"], held["reason"] if held["event"] == "drained" else held["at"]))
    return Reported(since=since, marks=frozenset(marks))


def _of_times(reported: Reported) -> Reported:
    """Without drains: a node may be drained again for the same reason."""
    return replace(reported, marks=frozenset(mark for mark in reported.marks if mark[0] != Event.DRAINED))


def _up(node: str, at: float, instance: Instance | None) -> NodeEvent:
    facts: dict[str, object] = {"instances": {node: instance.instance_id}} if instance else {}
    after = ""
    if instance is not None and instance.launched_at:
        facts["boot_s"] = round(at - instance.launched_at)
        after = f", {facts['boot_s']} s after its launch"
    return NodeEvent(event=Event.UP, node=node, text=f"{node} is up{after}", at=at, facts=facts)


def _local(text: str) -> float | None:
    """A time of Slurm's as if it were UTC; None if Slurm does not know it."""
    with suppress(ValueError):
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    return None


def _notice(comment: str) -> tuple[datetime, datetime] | None:
    """When a notice came and when the machine ends, from the comment of `notice_comment`; None for any other."""
    if found := _NOTICE.fullmatch(comment):
        with suppress(ValueError):
            return _utc(found[1]), _utc(found[2])
    return None


def _utc(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
