"""What each job of a life waited, ran and cost. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from corral.forecast.money import Sum
from corral.model.head import JobRun
from corral.report.concerned import expanded
from corral.report.spent.interruptions import STOPPED
from corral.report.spent.machines import Machine, at_work, moment, of_node, stretch


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCost:
    """A job with all its runs. `state`: of the last. `requeues`: how many runs were cut short and put back.

    `began`: when it first ran, None where it has not; `over`: when its last run ended, or the end of all that is known.
    `node_s`: of all its machines together; a machine that two jobs share counts for each.
    """

    job_id: str
    name: str
    user: str
    queue: str
    state: str
    nodes: int
    runs: int
    requeues: int
    began: datetime | None
    over: datetime
    waited_s: float
    ran_s: float
    node_s: float
    usd: Sum


def jobs(machines: Sequence[Machine], runs: Sequence[JobRun], *, start: datetime, end: datetime) -> tuple[JobCost, ...]:
    """Those that waited or ran between the two moments, in the order of their submission."""
    found: dict[str, list[JobRun]] = {}
    for run in sorted(runs, key=lambda one: (one.submitted, one.started or 0)):
        if run.ended is None or moment(run.ended) > start:
            found.setdefault(run.job_id, []).append(run)
    there = of_node(machines)
    return tuple(_job(own, there, start, end) for own in found.values())


def _job(runs: Sequence[JobRun], there: Mapping[str, Sequence[Machine]], start: datetime, end: datetime) -> JobCost:
    last = runs[-1]
    began = [run for run in runs if run.started is not None]
    took = [part for run in began for part in at_work(run, there, *stretch(run, end))]
    return JobCost(
        job_id=last.job_id,
        name=last.name,
        user=last.user,
        queue=last.queue,
        state=last.state,
        nodes=max((len(expanded(run.nodes)) for run in runs), default=0),
        runs=len(began),
        requeues=sum(run.state in STOPPED for run in began),
        began=min((stretch(run, end)[0] for run in began), default=None),
        over=max((stretch(run, end)[1] for run in began), default=end),
        waited_s=sum(_waited(run, start, end) for run in runs),
        ran_s=sum(_between(*stretch(run, end), start, end) for run in began),
        node_s=sum(seconds for _, seconds in took),
        usd=Sum.of((machine.sold.named, machine.usd(seconds)) for machine, seconds in took),
    )


def _waited(run: JobRun, start: datetime, end: datetime) -> float:
    until = run.started if run.started is not None else run.ended
    return _between(moment(run.submitted), end if until is None else moment(until), start, end)


def _between(begins: datetime, over: datetime, start: datetime, end: datetime) -> float:
    return max(0.0, (min(over, end) - max(begins, start)).total_seconds())
