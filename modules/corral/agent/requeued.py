"""Jobs that were requeued and wait for nothing but Slurm's own delay, which is two minutes by default.

Slurm holds a requeued job back for the life of its credentials (`cred_expire`), so that the old run is surely over. It
is over when the job is PENDING and two seconds have passed: a StartTime that is set earlier meets the revoked
credential, and slurmctld kills the job for good.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from corral.agent.slurm import SlurmError, scontrol, squeue

SETTLED = timedelta(seconds=3)  # 2 s was enough in every trial, 0.1 s killed the job
LONGEST_DELAY = timedelta(seconds=130)  # cred_expire's default and a second; what waits longer was told to
_FIELDS = "JobArrayID:.40,RestartCnt:.12,EligibleTime:.24,Reason:.40"


log = logging.getLogger("corral.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delayed:
    """Since when jobs were seen waiting, and what kept the last look from seeing them."""

    since: Mapping[str, datetime] = field(default_factory=dict)
    problem: str = ""


def release(delayed: Delayed, now: datetime) -> Delayed:
    """Starts the jobs whose old run is over; a look that fails is told once, and made again."""
    try:
        ready, since = to_start(waiting_jobs(), delayed.since, now)
        for job in ready:
            log.info("start %s: its former run is over", job)
            scontrol("update", f"jobid={job}", "StartTime=now")
    except SlurmError as error:
        if str(error) != delayed.problem:
            log.error("look at waiting jobs: %s", error)
        return Delayed(since=delayed.since, problem=str(error))
    return Delayed(since=since)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A pending job that waits for a time."""

    job_id: str
    restarts: int
    eligible: datetime


def waiting_jobs() -> tuple[Waiting, ...]:
    """The pending jobs whose reason is their begin time. Times are those of this machine's clock. Raises SlurmError."""
    lines = squeue("--states=PENDING", f"--Format={_FIELDS}").splitlines()
    found = (line.split() for line in lines)
    return tuple(
        Waiting(job_id=job, restarts=int(restarts), eligible=datetime.fromisoformat(eligible))
        for job, restarts, eligible, reason in (fields for fields in found if len(fields) == 4)
        if reason == "BeginTime"
    )


def to_start(
    waiting: tuple[Waiting, ...], seen: Mapping[str, datetime], now: datetime
) -> tuple[tuple[str, ...], Mapping[str, datetime]]:
    """The jobs that can start now, and since when each of the others was seen waiting."""
    held = [one for one in waiting if one.restarts and one.eligible - now <= LONGEST_DELAY]
    since = {one.job_id: seen.get(one.job_id, now) for one in held}
    ready = tuple(sorted(job for job, first in since.items() if now - first >= SETTLED))
    return ready, {job: first for job, first in since.items() if job not in ready}
