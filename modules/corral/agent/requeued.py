"""Jobs that were requeued and wait for nothing but Slurm's own delay, which is two minutes by default.

Slurm holds a requeued job back for the life of its credentials (`cred_expire`), so that the old run is surely over. It
is over when the job is PENDING and two seconds have passed: a StartTime that is set earlier meets the revoked
credential, and slurmctld kills the job for good.

A job whose queue can have no machines now starts when the first of its offers has rested, and says so. One whose queue
is stopped is left alone: it does not start, whatever its StartTime.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from corral.agent.events import Event, Journal
from corral.agent.launches import cold_until, why_cold
from corral.agent.memory import Cold
from corral.agent.partitions import not_open
from corral.agent.slurm import SlurmError, scontrol, squeue
from corral.model.cluster import QueuePlan

SETTLED = timedelta(seconds=3)  # 2 s was enough in every trial, 0.1 s killed the job
LONGEST_DELAY = timedelta(seconds=130)  # cred_expire's default and a second; what waits longer was told to
_FIELDS = "JobArrayID:.40,RestartCnt:.12,EligibleTime:.24,Partition:.200,Reason:.40"

log = logging.getLogger("corral.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delayed:
    """Since when jobs were seen waiting, and what kept the last look from seeing them."""

    since: Mapping[str, datetime] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """A queue that can have no machines until then, and why."""

    until: datetime
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A pending job that waits for a time."""

    job_id: str
    restarts: int
    eligible: datetime
    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Let these jobs start then (None: now); `why` they wait."""

    job_ids: tuple[str, ...]
    at: datetime | None
    why: str


def release(delayed: Delayed, shut: Mapping[str, Closed], now: datetime, journal: Journal) -> Delayed:
    """Starts the jobs whose old run is over; a look that fails is told once, and made again."""
    try:
        waiting = waiting_jobs()
        starts, since = to_start(waiting, delayed.since, shut, now, _stopped(waiting))
        for start in starts:
            jobs = ",".join(start.job_ids)
            at = "now" if start.at is None else start.at.strftime("%Y-%m-%dT%H:%M:%S")
            scontrol("update", f"jobid={jobs}", f"StartTime={at}", f"AdminComment={start.why}")
            event = Event.STARTED if start.at is None else Event.WAITS
            journal.tell(event, f"{jobs}: {start.why or 'their former run is over'}", jobs=list(start.job_ids))
    except SlurmError as error:
        if str(error) != delayed.problem:
            log.error("look at waiting jobs: %s", error)
        return Delayed(since=delayed.since, problem=str(error))
    return Delayed(since=since)


def closed(queues: Sequence[QueuePlan], cold: Mapping[str, Cold], now: float) -> Mapping[str, Closed]:
    """The queues that can have no machines now. Slurm prints and reads this machine's time, without a zone."""
    until = {queue.name: (queue, cold_until(queue, cold, now)) for queue in queues}
    return {
        name: Closed(until=datetime.fromtimestamp(at), why=why_cold(queue, cold, now))
        for name, (queue, at) in until.items()
        if at is not None
    }


def waiting_jobs() -> tuple[Waiting, ...]:
    """The pending jobs whose reason is their begin time. Times are those of this machine's clock. Raises SlurmError."""
    lines = squeue("--states=PENDING", f"--Format={_FIELDS}").splitlines()
    found = (line.split() for line in lines)
    return tuple(
        Waiting(
            job_id=job,
            restarts=int(restarts),
            eligible=datetime.fromisoformat(eligible),
            queues=tuple(queues.split(",")),
        )
        for job, restarts, eligible, queues, reason in (fields for fields in found if len(fields) == 5)
        if reason == "BeginTime"
    )


def to_start(
    waiting: tuple[Waiting, ...],
    seen: Mapping[str, datetime],
    shut: Mapping[str, Closed],
    now: datetime,
    stopped: Collection[str] = (),
) -> tuple[tuple[Start, ...], Mapping[str, datetime]]:
    """What to tell the jobs that Slurm alone delays, and since when each of the others was seen waiting.

    `shut`: queues that can have no machines. `stopped`: the queues that start no jobs.
    """
    held = {one.job_id: one for one in waiting if one.restarts and one.eligible - now <= LONGEST_DELAY}
    since = {job: seen.get(job, now) for job in held}
    free = (job for job, one in held.items() if not set(one.queues) <= set(stopped))
    ready = sorted(job for job in free if now - since[job] >= SETTLED)
    together: dict[tuple[datetime | None, str], list[str]] = defaultdict(list)
    for job in ready:
        together[opens(held[job].queues, shut, now)].append(job)
    starts = tuple(Start(job_ids=tuple(jobs), at=at, why=why) for (at, why), jobs in together.items())
    return starts, {job: first for job, first in since.items() if job not in ready}


def _stopped(waiting: Sequence[Waiting]) -> tuple[str, ...]:
    """The queues of these jobs that start none. Raises SlurmError."""
    queues = sorted({queue for one in waiting if one.restarts for queue in one.queues})
    return not_open(queues) if queues else ()


def opens(queues: Sequence[str], shut: Mapping[str, Closed], now: datetime) -> tuple[datetime | None, str]:
    """When the first of a job's queues can have machines, and why not now; None where one can."""
    if any(queue not in shut or shut[queue].until <= now for queue in queues):
        return None, ""
    first = min((shut[queue] for queue in queues), key=lambda one: one.until)
    return first.until, f"corral: {first.why}"
