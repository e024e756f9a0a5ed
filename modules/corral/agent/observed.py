"""What happened on nodes, as the keeper learns it from Slurm. Pure: nodes before and now in, what to write down out.

Nodes cannot write on the head's volume. A node that is taken back says so in its comment, which slurmctld keeps; when a
slurmd began, slurmctld knows. The keeper looks at every turn, and notes the time at which it happened.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from corral.agent.events import Event, Journal, moment
from corral.agent.world import Instance, SlurmNode

_OF_NODES = (Event.UP, Event.NOTICE, Event.DRAINED)
_NOTICE = re.compile(r"corral: notice at (\S+), ends at (\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was last seen of a node: since when its slurmd runs (empty: none does), its comment, whether it drains."""

    started: str
    comment: str
    drains: bool


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
        if news.event is Event.DRAINED:
            return (str(news.event), news.node, str(news.facts["why"])) in self.marks
        if news.at is None:  # nobody can say whether it was told
            return True
        return news.at < self.since or (str(news.event), news.node, moment(news.at)) in self.marks


def comment_of(noticed: datetime, end: datetime) -> str:
    """What a node that is taken back tells slurmctld."""
    return f"corral: notice at {noticed:%Y-%m-%dT%H:%M:%SZ}, ends at {end:%Y-%m-%dT%H:%M:%SZ}"


def seen_now(nodes: Sequence[SlurmNode]) -> Mapping[str, Seen]:
    """What is to be remembered of the nodes that have a machine or said something; the others are as never seen."""
    return {
        node.name: Seen(
            started=node.started if node.registered else "",
            comment=node.comment,  # it outlives the machine, and a notice may be over before the next look
            drains=node.wants_machine and "DRAIN" in node.states,
        )
        for node in nodes
        if node.wants_machine or node.comment
    }


def news(
    before: Mapping[str, Seen], nodes: Sequence[SlurmNode], shown: Sequence[Instance], zone_s: float
) -> Iterator[News]:
    """What is new since `before`. `zone_s`: what this machine's clock is ahead of UTC, as Slurm prints its time."""
    launched = {one.node: one for one in shown if one.coming}
    nothing = Seen(started="", comment="", drains=False)
    now = seen_now(nodes)
    for node in nodes:
        held, was = now.get(node.name), before.get(node.name, nothing)
        if held is None:
            continue
        if held.started and held.started != was.started:
            yield _up(node, launched.get(node.name), zone_s)
        if held.comment != was.comment and (found := _NOTICE.match(held.comment)):
            at, end = (_utc(text) for text in found.groups())
            text = f"{node.name} is taken back at {end:%H:%M:%S} UTC"
            yield News(event=Event.NOTICE, node=node.name, text=text, at=at.timestamp(), facts={"ends": found[2]})
        if held.drains and not was.drains:
            why = node.reason or "no reason is given"
            yield News(event=Event.DRAINED, node=node.name, text=f"{node.name}: {why}", at=None, facts={"why": why})


def tell(
    journal: Journal,
    before: Mapping[str, Seen] | None,
    nodes: Sequence[SlurmNode],
    shown: Sequence[Instance],
    *,
    zone_s: float,
) -> Mapping[str, Seen]:
    """Writes down what is new, and what is seen now.

    A keeper's first look (None) tells what no keeper before it has: those that wrote the same journal.
    """
    told = told_in(journal.lines()) if before is None else Told()
    for one in news(before or {}, nodes, shown, zone_s):
        if before is not None or not told.has(one):
            journal.tell(one.event, one.text, at=one.at, nodes=one.node, **one.facts)
    return seen_now(nodes)


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


def _up(node: SlurmNode, instance: Instance | None, zone_s: float) -> News:
    at = _local(node.started, zone_s)
    facts: dict[str, object] = {"instances": {node.name: instance.instance_id}} if instance else {}
    after = ""
    if at is not None and instance is not None and instance.launched_at:
        facts["boot_s"] = round(at - instance.launched_at)
        after = f", {facts['boot_s']} s after its launch"
    return News(event=Event.UP, node=node.name, text=f"{node.name} is up{after}", at=at, facts=facts)


def _local(text: str, zone_s: float) -> float | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() - zone_s
    except ValueError:
        return None


def _utc(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
