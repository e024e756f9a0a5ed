"""End preempted jobs just before their grace time is over; Slurm then requeues them.

From 24.05 on, slurmctld marks a job (GRACE_PREEMPT) when its grace time begins, and requeues a job that ends with the
mark. Only such an end removes it. A job that slurmctld requeues itself when the grace time is over keeps it: it runs
again, completes, and is requeued once more. Source: src/slurmctld/job_mgr.c (_job_complete, _job_requeue_op) and
proc_req.c (_slurm_rpc_complete_batch_script) of 24.11.5 and 26.05.3; 26.05.5 was seen to remove the mark.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from corral.agent.slurm import SlurmError, lines, scancel, squeue
from corral.model.accounts import QosPlan

TERMINATED_AHEAD = timedelta(seconds=10)  # the script may still handle SIGTERM; the loop runs every five seconds
KILLED_AHEAD = timedelta(seconds=5)  # slurmctld may look in any second after the end
_FIELDS = "JobID:.24,BatchFlag:.8,PreemptTime:.24,EndTime:.24,QOS:.200"

log = logging.getLogger("corral.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptedJob:
    """A running batch job in its grace time. Times are local and without a zone, as Slurm prints them."""

    job_id: str
    ends: datetime


def end_graces(qos: Sequence[QosPlan], terminated: frozenset[str], now: datetime) -> frozenset[str] | None:
    """End the scripts of jobs whose grace time is almost over. The jobs that had SIGTERM; None if none is preempted.

    `terminated`: the jobs that had it before. Raises SlurmError.
    """
    jobs = preempted_jobs({one.name: timedelta(seconds=one.grace_s) for one in qos})
    term, kill = to_signal(jobs, terminated, now)
    for signal, ending in (("TERM", term), ("KILL", kill)):
        if ending:
            log.info("%s: their grace time ends, %s", ", ".join(ending), signal)
            try:
                scancel("--batch", f"--signal={signal}", *ending)
            except SlurmError as error:  # one has ended meanwhile
                log.info("end preempted jobs: %s", error)
    return (terminated & {job.job_id for job in jobs}) | {*term} if jobs else None


def preempted_jobs(graces: Mapping[str, timedelta]) -> tuple[PreemptedJob, ...]:
    """The preempted jobs that still run. `graces`: of each QOS. Raises SlurmError."""
    found = (line.split() for line in lines(squeue("--states=RUNNING", f"--Format={_FIELDS}")))
    ends = (
        (job, _end(since, end, graces.get(qos)))
        for job, is_batch, since, end, qos in (fields for fields in found if len(fields) == 5)
        if is_batch == "1"
    )
    return tuple(PreemptedJob(job_id=job, ends=at) for job, at in ends if at)


def _end(since: str, end: str, grace: timedelta | None) -> datetime | None:
    """When the grace time ends; None if the job is not preempted.

    squeue hides the end of a job without a time limit.
    """
    if not since[:1].isdigit():
        return None
    if end[:1].isdigit():
        return datetime.fromisoformat(end)
    return datetime.fromisoformat(since) + grace if grace else None


def to_signal(
    jobs: Sequence[PreemptedJob], terminated: frozenset[str], now: datetime
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The jobs whose scripts get SIGTERM now, and those whose scripts get SIGKILL."""
    kill = tuple(job.job_id for job in jobs if job.ends - now <= KILLED_AHEAD)
    ending = (job.job_id for job in jobs if job.ends - now <= TERMINATED_AHEAD)
    return tuple(job for job in ending if job not in terminated and job not in kill), kill
