"""When jobs began, seen with their nodes. Slurm's accounting dates a run that was requeued while its nodes booted from
its allocation: it waited all the time, and a node that is not up runs nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from corral.model.head import JobRun
from corral.report.concerned import expanded
from corral.report.events import Happened

# What ends a node's machine, or says that it is gone.
ENDS = frozenset({"ended", "forgotten", "terminated", "returned"})
# A run that ended so has run, also where nobody has written down that its nodes came up.
_HAS_RUN = frozenset({"completed", "failed", "timeout", "out_of_memory"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """A machine of a node. `up`: when its slurmd first began; `over`: when it was gone; None: not that one knows."""

    launched: datetime
    up: datetime | None = None
    over: datetime | None = None


def boots(told: Iterable[Happened]) -> tuple[Boot, ...]:
    """The machines of a node one after the other, by the events that concern it."""
    found: list[Boot] = []
    for one in told:
        last = found[-1] if found and found[-1].over is None else None
        if one.kind == "launched":
            if last:
                found[-1] = replace(last, over=one.at)
            found.append(Boot(launched=one.at))
        elif last and one.kind == "up" and last.up is None and one.at >= last.launched:
            found[-1] = replace(last, up=one.at)
        elif last and one.kind in ENDS:
            found[-1] = replace(last, over=one.at)
    return tuple(found)


def as_they_were(runs: Iterable[JobRun], told: Mapping[str, Sequence[Happened]], end: datetime) -> tuple[JobRun, ...]:
    """The runs as `as_it_was` sees each. `told`: the events by their nodes; `end`: of all that is known."""
    machines = {node: boots(of_node) for node, of_node in told.items()}
    return tuple(as_it_was(run, expanded(run.nodes), machines, end) for run in runs)


def as_it_was(run: JobRun, nodes: Sequence[str], of_node: Mapping[str, Sequence[Boot]], end: datetime) -> JobRun:
    """The run, begun when all its nodes were up at the earliest; one that ended before that only waited.

    A node of which no machine is known was up. `end`: of all that is known.
    """
    if run.started is None:
        return run
    start, over = _time(run.started), end if run.ended is None else _time(run.ended)
    ready = [_ready(of_node.get(node, ()), start, over) for node in nodes]
    known = [moment for moment in ready if moment is not None]
    begins = max((start, *known))
    if len(known) == len(ready) and (begins < over or begins == start):
        return replace(run, started=int(begins.timestamp()))
    return run if run.state in _HAS_RUN else replace(run, started=None)


def _ready(machines: Sequence[Boot], start: datetime, over: datetime) -> datetime | None:
    """From when on the node could run what was allocated at `start`, by its last machine of that time; None: never."""
    there = [one for one in machines if one.launched < over and (one.over is None or one.over > start)]
    return start if not there else None if there[-1].up is None else max(start, there[-1].up)


def _time(moment: int) -> datetime:
    return datetime.fromtimestamp(moment, UTC)
