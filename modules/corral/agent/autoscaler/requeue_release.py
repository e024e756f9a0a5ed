"""Release requeued jobs that wait only for Slurm's own delay, two minutes by default.

Slurm holds a requeued job until its old credential expires (`cred_expire`), when the old run must be over. In fact the
run is over when the job is PENDING and two seconds have passed. With an earlier StartTime the job would meet its
revoked credential, and slurmctld would kill it for good.

A job whose queue can get no machines now starts when the first backoff of its offers ends; its AdminComment says so. A
job of a stopped queue is left alone: it does not start, regardless of its StartTime.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from corral.agent.autoscaler.launch_planner import available_at, why_unavailable
from corral.agent.cluster.partition_state import not_open
from corral.agent.cluster.state import Backoff
from corral.agent.events import Event, EventLog
from corral.agent.slurm import SlurmError, lines, scontrol, squeue
from corral.model.cluster import QueuePlan

SETTLED = timedelta(seconds=3)  # 2 s was enough in every test, 0.1 s killed the job
LONGEST_DELAY = timedelta(seconds=130)  # cred_expire's default plus some seconds; a longer wait has another cause
_FIELDS = "JobArrayID:.40,RestartCnt:.12,EligibleTime:.24,Partition:.200,Reason:.40"

log = logging.getLogger("corral.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayedJobs:
    """Since when jobs are known to wait, and the error of the last call."""

    since: Mapping[str, datetime] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedQueue:
    """A queue that can get no machines before `until`, and why."""

    until: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequeuedJob:
    """A pending job that waits for its begin time."""

    job_id: str
    restarts: int
    eligible: datetime
    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStart:
    """Set the StartTime of these jobs (None: now). `reason`: their AdminComment."""

    job_ids: tuple[str, ...]
    at: datetime | None
    reason: str


def release(delayed: DelayedJobs, closed: Mapping[str, ClosedQueue], now: datetime, journal: EventLog) -> DelayedJobs:
    """Start the jobs whose old run is over. A failure is logged once; the next call tries again."""
    try:
        waiting = waiting_jobs()
        starts, since = to_start(waiting, delayed.since, closed, now, _stopped(waiting))
        for start in starts:
            jobs = ",".join(start.job_ids)
            at = "now" if start.at is None else start.at.strftime("%Y-%m-%dT%H:%M:%S")
            scontrol("update", f"jobid={jobs}", f"StartTime={at}", f"AdminComment={start.reason}")
            event = Event.STARTED if start.at is None else Event.WAITS
            journal.log_event(event, f"{jobs}: {start.reason or 'their former run is over'}", jobs=list(start.job_ids))
    except SlurmError as error:
        if str(error) != delayed.problem:
            log.error("check waiting jobs: %s", error)
        return DelayedJobs(since=delayed.since, problem=str(error))
    return DelayedJobs(since=since)


def closed_queues(
    queues: Sequence[QueuePlan], backoffs: Mapping[str, Backoff], now: float
) -> Mapping[str, ClosedQueue]:
    """The queues that can get no machines now. Times are local and without a zone, as Slurm prints and reads them."""
    until = {queue.name: (queue, available_at(queue, backoffs, now)) for queue in queues}
    return {
        name: ClosedQueue(until=datetime.fromtimestamp(at), reason=why_unavailable(queue, backoffs, now))
        for name, (queue, at) in until.items()
        if at is not None
    }


def waiting_jobs() -> tuple[RequeuedJob, ...]:
    """The pending jobs that wait for their begin time. Times are local. Raises SlurmError."""
    found = (line.split() for line in lines(squeue("--states=PENDING", f"--Format={_FIELDS}")))
    return tuple(
        RequeuedJob(
            job_id=job,
            restarts=int(restarts),
            eligible=datetime.fromisoformat(eligible),
            queues=tuple(queues.split(",")),
        )
        for job, restarts, eligible, queues, reason in (fields for fields in found if len(fields) == 5)
        if reason == "BeginTime"
    )


def to_start(
    waiting: tuple[RequeuedJob, ...],
    seen: Mapping[str, datetime],
    closed: Mapping[str, ClosedQueue],
    now: datetime,
    stopped: Collection[str] = (),
) -> tuple[tuple[JobStart, ...], Mapping[str, datetime]]:
    """The starts of jobs that only Slurm delays, and since when each of the others waits.

    `closed`: queues that can get no machines. `stopped`: queues that start no jobs.
    """
    held = {one.job_id: one for one in waiting if one.restarts and one.eligible - now <= LONGEST_DELAY}
    since = {job: seen.get(job, now) for job in held}
    free = (job for job, one in held.items() if not set(one.queues) <= set(stopped))
    ready = sorted(job for job in free if now - since[job] >= SETTLED)
    together: dict[tuple[datetime | None, str], list[str]] = defaultdict(list)
    for job in ready:
        together[opens_at(held[job].queues, closed, now)].append(job)
    starts = tuple(JobStart(job_ids=tuple(jobs), at=at, reason=reason) for (at, reason), jobs in together.items())
    return starts, {job: first for job, first in since.items() if job not in ready}


def _stopped(waiting: Sequence[RequeuedJob]) -> tuple[str, ...]:
    """The queues of these jobs that start no job. Raises SlurmError."""
    queues = sorted({queue for one in waiting if one.restarts for queue in one.queues})
    return not_open(queues) if queues else ()


def opens_at(queues: Sequence[str], closed: Mapping[str, ClosedQueue], now: datetime) -> tuple[datetime | None, str]:
    """When the first of a job's queues can get machines, and why not now; None if one can."""
    if any(queue not in closed or closed[queue].until <= now for queue in queues):
        return None, ""
    first = min((closed[queue] for queue in queues), key=lambda one: one.until)
    return first.until, f"corral: {first.reason}"
