"""The waiting time, run time and cost of each job. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from corral.forecast.cost.cost_range import Sum
from corral.model.head_report import JobRun
from corral.report.timeline.event_nodes import expanded
from corral.report.usage.interruption_cost import STOPPED
from corral.report.usage.machine_usage import MachineUsage, at_work, of_node, run_period, utc_time


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCost:
    """A job with all its runs. `state`: of the last. `requeues`: the number of interrupted runs.

    `began`: the start of its first run, None if it has not run. `ended`: the end of its last run, or of the history.
    `node_s`: the sum over its machines; a machine that two jobs share counts for each.
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
    ended: datetime
    waited_s: float
    ran_s: float
    node_s: float
    usd: Sum


def job_costs(
    machines: Sequence[MachineUsage], runs: Sequence[JobRun], *, start: datetime, end: datetime
) -> tuple[JobCost, ...]:
    """The jobs that waited or ran between the two times, in the order of their submission."""
    found: dict[str, list[JobRun]] = {}
    for run in sorted(runs, key=lambda one: (one.submitted, one.started or 0)):
        if run.ended is None or utc_time(run.ended) > start:
            found.setdefault(run.job_id, []).append(run)
    there = of_node(machines)
    return tuple(_job(own, there, start, end) for own in found.values())


def _job(
    runs: Sequence[JobRun], there: Mapping[str, Sequence[MachineUsage]], start: datetime, end: datetime
) -> JobCost:
    last = runs[-1]
    began = [run for run in runs if run.started is not None]
    usage = [part for run in began for part in at_work(run, there, *run_period(run, end))]
    return JobCost(
        job_id=last.job_id,
        name=last.name,
        user=last.user,
        queue=last.queue,
        state=last.state,
        nodes=max((len(expanded(run.nodes)) for run in runs), default=0),
        runs=len(began),
        requeues=sum(run.state in STOPPED for run in began),
        began=min((run_period(run, end)[0] for run in began), default=None),
        ended=max((run_period(run, end)[1] for run in began), default=end),
        waited_s=sum(_waited(run, start, end) for run in runs),
        ran_s=sum(_between(*run_period(run, end), start, end) for run in began),
        node_s=sum(seconds for _, seconds in usage),
        usd=Sum.of((machine.rate.named, machine.usd(seconds)) for machine, seconds in usage),
    )


def _waited(run: JobRun, start: datetime, end: datetime) -> float:
    until = run.started if run.started is not None else run.ended
    return _between(utc_time(run.submitted), end if until is None else utc_time(until), start, end)


def _between(begins: datetime, ended: datetime, start: datetime, end: datetime) -> float:
    return max(0.0, (min(ended, end) - max(begins, start)).total_seconds())
