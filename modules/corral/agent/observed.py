"""What happened on nodes, as the keeper learns it from Slurm. Pure: nodes before and now in, what to write down out.

Nodes cannot write on the head's volume. A node that is taken back says so in its comment, which slurmctld keeps; when a
slurmd began, slurmctld knows. The keeper looks at every turn, and notes the time at which it happened.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from corral.agent.events import Event, Journal, moment
from corral.agent.world import Instance, SlurmNode

_OF_NODES = (Event.UP, Event.NOTICE, Event.DRAINED)
_NOTICE = re.compile(r"corral: notice at (\S+), ends at (\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was last seen of a node: when the last slurmd began that was heard of (empty: none was), its comment,
    whether it drains.
    """

    started: str
    comment: str
    drains: bool


_NEVER = Seen(started="", comment="", drains=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """Something that happened to a node, in seconds since 1970; None: when is not known, and it was just seen."""

    event: Event
    node: str
    text: str
    at: float | None
    facts: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What earlier keepers have written down: each event with its node and its time, or its reason where Slurm tells
    no time. `since`: of their first line; what is older was told in lines that are gone.
    """

    since: float = 0.0
    marks: frozenset[tuple[str, str, str]] = frozenset()

    def has(self, news: News) -> bool:
        """Whether it need not be told."""
        if news.at is None:
            return (str(news.event), news.node, str(news.facts["why"])) in self.marks
        return news.at < self.since or (str(news.event), news.node, moment(news.at)) in self.marks


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What a keeper remembers of its last look, and what those before it have told that could be seen again."""

    seen: Mapping[str, Seen]
    told: Told


def comment_of(noticed: datetime, end: datetime) -> str:
    """What a node that is taken back tells slurmctld."""
    return f"corral: notice at {noticed:%Y-%m-%dT%H:%M:%SZ}, ends at {end:%Y-%m-%dT%H:%M:%SZ}"


def seen_now(before: Mapping[str, Seen], nodes: Sequence[SlurmNode]) -> Mapping[str, Seen]:
    """What is to be remembered of nodes, after `before`; those that never had a machine nor a comment are left out.

    When the last slurmd began is never forgotten. After its own restart slurmctld may have a node down, silent or
    powered off that runs, and does not know since when; then it has it again as it was.
    """
    found = {node.name: _seen(before.get(node.name, _NEVER), node) for node in nodes}
    has_machine = {node.name for node in nodes if node.wants_machine}
    return {name: seen for name, seen in found.items() if name in has_machine or seen.comment or seen.started}


def _seen(was: Seen, node: SlurmNode) -> Seen:
    has_begun = node.registered and _local(node.started) is not None
    return Seen(
        started=node.started if has_begun else was.started,
        comment=node.comment,  # it outlives the machine, and a notice may be over before the next look
        drains=node.wants_machine and "DRAIN" in node.states,
    )


def news(
    before: Mapping[str, Seen], nodes: Sequence[SlurmNode], shown: Sequence[Instance], zone_s: float
) -> Iterator[News]:
    """What is new since `before`. `zone_s`: what this machine's clock is ahead of UTC, as Slurm prints its time."""
    launched = {one.node: one for one in shown if one.coming}
    now = seen_now(before, nodes)
    for node in nodes:
        held, was = now.get(node.name), before.get(node.name, _NEVER)
        if held is None:
            continue
        if held.started != was.started and (began := _local(held.started)) is not None:
            yield _up(node.name, began - zone_s, launched.get(node.name))
        if held.comment != was.comment and (found := _NOTICE.match(held.comment)):
            at, end = (_utc(text) for text in found.groups())
            text = f"{node.name} is taken back at {end:%H:%M:%S} UTC"
            yield News(event=Event.NOTICE, node=node.name, text=text, at=at.timestamp(), facts={"ends": found[2]})
        if held.drains and not was.drains:
            why = node.reason or "no reason is given"
            yield News(event=Event.DRAINED, node=node.name, text=f"{node.name}: {why}", at=None, facts={"why": why})


def tell(
    journal: Journal,
    last: Looked | None,
    nodes: Sequence[SlurmNode],
    shown: Sequence[Instance],
    *,
    zone_s: float,
) -> Looked:
    """Writes down what is new since the last look, and returns this one.

    A keeper's first look (None) tells what no keeper before it has: those that wrote the same journal. What has a time
    is compared with theirs at later looks too: slurmctld, begun anew with the keeper, may not know it at the first.
    """
    before, told = (last.seen, last.told) if last else ({}, told_in(journal.lines()))
    for one in news(before, nodes, shown, zone_s):
        if not told.has(one):
            journal.tell(one.event, one.text, at=one.at, nodes=one.node, **one.facts)
    return Looked(seen=seen_now(before, nodes), told=told if last else _of_times(told))


def told_in(lines: Iterable[str]) -> Told:
    """What lines of a journal say of nodes; those that are cut short say nothing."""
    since, marks = 0.0, set[tuple[str, str, str]]()
    for line in lines:
        # Most lines of a long journal are about something else, and need not be read.
        if since and not any(f'"event": "{event}"' in line for event in _OF_NODES):
            continue
        with suppress(ValueError, KeyError, TypeError):
            held = json.loads(line)
            since = since or _utc(held["at"]).timestamp()
            if held["event"] in _OF_NODES:
                marks.add((held["event"], held["nodes"], held["why"] if held["event"] == "drained" else held["at"]))
    return Told(since=since, marks=frozenset(marks))


def _of_times(told: Told) -> Told:
    """Without drains: a node can be drained again for the same reason."""
    return replace(told, marks=frozenset(mark for mark in told.marks if mark[0] != Event.DRAINED))


def _up(node: str, at: float, instance: Instance | None) -> News:
    facts: dict[str, object] = {"instances": {node: instance.instance_id}} if instance else {}
    after = ""
    if instance is not None and instance.launched_at:
        facts["boot_s"] = round(at - instance.launched_at)
        after = f", {facts['boot_s']} s after its launch"
    return News(event=Event.UP, node=node, text=f"{node} is up{after}", at=at, facts=facts)


def _local(text: str) -> float | None:
    """A time of Slurm's as if it were UTC; None where Slurm does not know it."""
    with suppress(ValueError):
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    return None


def _utc(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
