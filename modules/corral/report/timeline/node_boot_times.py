"""Corrects the start times of job runs by the boot times of their nodes. Pure.

Slurm's accounting dates a run that was requeued while its nodes booted from its allocation, although it only waited.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from corral.model.head_report import JobRun
from corral.report.timeline.event_lines import ClusterEvent
from corral.report.timeline.event_nodes import expanded

# Events after which the instance of a node is gone.
ENDS = frozenset({"ended", "marked-down", "terminated", "released"})
# Runs with these final states have run, even if no event records that their nodes came up.
_HAS_RUN = frozenset({"completed", "failed", "timeout", "out_of_memory"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """An instance of a node. `up`: the first start of its slurmd. `ended`: when it was gone. None: unknown."""

    launched: datetime
    up: datetime | None = None
    ended: datetime | None = None


def boots(node_events: Iterable[ClusterEvent]) -> tuple[Boot, ...]:
    """The instances of a node in order, from its events."""
    found: list[Boot] = []
    for one in node_events:
        last = found[-1] if found and found[-1].ended is None else None
        if one.kind == "launched":
            if last:
                found[-1] = replace(last, ended=one.at)
            found.append(Boot(launched=one.at))
        elif last and one.kind == "up" and last.up is None and one.at >= last.launched:
            found[-1] = replace(last, up=one.at)
        elif last and one.kind in ENDS:
            found[-1] = replace(last, ended=one.at)
    return tuple(found)


def corrected_runs(
    runs: Iterable[JobRun], node_events: Mapping[str, Sequence[ClusterEvent]], end: datetime
) -> tuple[JobRun, ...]:
    """The corrected runs. `node_events`: the events by node. `end`: the end of the known history."""
    machines = {node: boots(of_node) for node, of_node in node_events.items()}
    return tuple(corrected_run(run, expanded(run.nodes), machines, end) for run in runs)


def corrected_run(run: JobRun, nodes: Sequence[str], of_node: Mapping[str, Sequence[Boot]], end: datetime) -> JobRun:
    """The run, started no earlier than all its nodes were up; a run that ended before only waited.

    A node without a known instance counts as up. `end`: the end of the known history.
    """
    if run.started is None:
        return run
    start, ended = _time(run.started), end if run.ended is None else _time(run.ended)
    ready = [_ready(of_node.get(node, ()), start, ended) for node in nodes]
    known = [moment for moment in ready if moment is not None]
    begins = max((start, *known))
    if len(known) == len(ready) and (begins < ended or begins == start):
        return replace(run, started=int(begins.timestamp()))
    return run if run.state in _HAS_RUN else replace(run, started=None)


def _ready(machines: Sequence[Boot], start: datetime, ended: datetime) -> datetime | None:
    """When the node could run a job allocated at `start`, by its last instance of that time; None if never."""
    there = [one for one in machines if one.launched < ended and (one.ended is None or one.ended > start)]
    return start if not there else None if there[-1].up is None else max(start, there[-1].up)


def _time(moment: int) -> datetime:
    return datetime.fromtimestamp(moment, UTC)
