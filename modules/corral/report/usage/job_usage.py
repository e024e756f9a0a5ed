"""The waiting time, run time and cost of each job. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from corral.forecast.cost.cost_range import Sum
from corral.model.head_report import JobRun
from corral.report.timeline.event_nodes import expanded
from corral.report.usage.interruption_cost import STOPPED
from corral.report.usage.machine_rates import MachineRate
from corral.report.usage.machine_usage import Period, run_period, utc_time
from corral.report.usage.time_slices import TimeSlice


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCost:
    """A job with all its runs. `state`: of the last. `requeues`: the number of interrupted runs.

    `began`: the start of its first run, None if it has not run. `ended`: the end of its last run, or of the history.
    `node_s`: the sum of its parts of its machines (`time_slices`).
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
    slices: Iterable[TimeSlice], runs: Sequence[JobRun], *, start: datetime, end: datetime
) -> tuple[JobCost, ...]:
    """The jobs that waited or ran between the two times, in the order of their submission."""
    seconds: dict[str, dict[MachineRate, float]] = defaultdict(lambda: defaultdict(float))
    for one in slices:
        if one.run is not None:
            length_s = (one.ended - one.begins).total_seconds()
            seconds[one.run.job_id][one.machine.rate] += length_s * one.share
    found: dict[str, list[JobRun]] = {}
    for run in sorted(runs, key=lambda one: (one.submitted, one.started or 0)):
        if run.ended is None or utc_time(run.ended) > start:
            found.setdefault(run.job_id, []).append(run)
    return tuple(_job(own, seconds[job_id], start, end) for job_id, own in found.items())


def _job(runs: Sequence[JobRun], seconds: Mapping[MachineRate, float], start: datetime, end: datetime) -> JobCost:
    last = runs[-1]
    began = [run for run in runs if run.started is not None]
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
        waited_s=sum(_between(*waiting_period(run, end), start, end) for run in runs),
        ran_s=sum(_between(*run_period(run, end), start, end) for run in began),
        node_s=sum(seconds.values()),
        usd=Sum.of((rate.named, rate.usd(seconds[rate])) for rate in seconds),
    )


def waiting_period(run: JobRun, end: datetime) -> Period:
    """The period from submission to start; until the end of the known history if it still waits."""
    until = run.started if run.started is not None else run.ended
    return utc_time(run.submitted), end if until is None else utc_time(until)


def _between(begins: datetime, ended: datetime, start: datetime, end: datetime) -> float:
    return max(0.0, (min(ended, end) - max(begins, start)).total_seconds())
