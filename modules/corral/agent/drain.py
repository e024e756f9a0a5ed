"""A cluster is about to end: no job starts any more, those that run may save what they have, and then they end.

Queues are closed before the jobs are looked at, so that none begins in between. A drain that was cut off can be made
again; one that finds jobs and may not touch them opens the queues that it closed.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum, auto

from corral.agent.events import Event, Journal
from corral.agent.jobs import NodeJob, Phase, ask_for_checkpoint, requeue, running_jobs
from corral.agent.partitions import not_open
from corral.agent.slurm import SlurmError, open_queue, scancel, scontrol, squeue, stop_queue
from corral.model.head import Drained

GRACE_S = 120.0  # what a spot machine has between its notice and its end: jobs are prepared for that
_LOOK_EACH_S = 1.0
# What programs have after SIGTERM (KillWait's default is 30 s), and the epilogs; the machines are ended then anyhow.
_ENDS_WITHIN_S = 60.0

log = logging.getLogger("corral.agent")


class _How(Enum):
    REQUEUED = auto()
    CANCELLED = auto()


def drain(
    queues: Sequence[str],
    journal: Journal,
    *,
    now: bool,
    grace_s: float = GRACE_S,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Drained:
    """What was done when no job runs any more. Without `now` a cluster in which jobs run is left as it was.

    `grace_s`: how long jobs have from the request for a checkpoint to their end. Raises SlurmError.
    """
    stopped = not_open(queues)
    closed = [queue for queue in queues if queue not in stopped]
    for queue in closed:
        stop_queue(queue)
    found, waiting = _running(), _waiting()
    if found and not now:
        for queue in closed:
            open_queue(queue)
        return Drained(refused=True, waiting=waiting)
    asked = _ask(found, grace_s)
    journal.tell(Event.DRAINING, f"{len(found)} jobs run; no other starts", jobs=[job.job_id for job in found])
    ids = {job.job_id for job in found}
    left = _await(lambda: [job for job in _running() if job.job_id in ids], grace_s if asked else 0.0, sleep, clock)
    forced = {job.job_id: how for job in left if (how := _end(job))}
    _await(running_jobs, _ENDS_WITHIN_S, sleep, clock)
    return Drained(
        refused=False,
        asked=asked,
        ended=tuple(job.job_id for job in found if job.job_id not in forced),
        requeued=tuple(job for job, how in forced.items() if how is _How.REQUEUED),
        cancelled=tuple(job for job, how in forced.items() if how is _How.CANCELLED),
        waiting=waiting,
    )


def _ask(found: Sequence[NodeJob], grace_s: float) -> tuple[str, ...]:
    """The batch jobs that were asked for a checkpoint; people who sit before a job are told."""
    asked: list[str] = []
    for job in found:
        with suppress(SlurmError):  # it has just ended, or nobody listens any more
            if job.batch:
                asked += [job.job_id] if job.phase is Phase.RUNS and ask_for_checkpoint(job) else []
            else:
                scontrol("notify", job.job_id, f"corral: the cluster is taken down, this job ends in {grace_s:.0f} s")
    return tuple(asked)


def _await(
    jobs: Callable[[], Sequence[NodeJob]], for_s: float, sleep: Callable[[float], None], clock: Callable[[], float]
) -> Sequence[NodeJob]:
    """The jobs that are left when the time is over."""
    until = clock() + for_s
    while (left := jobs()) and clock() < until:
        sleep(_LOOK_EACH_S)
    return left


def _running() -> list[NodeJob]:
    """Without those that end by themselves: nothing can be asked of them, and nobody has to end them."""
    return [job for job in running_jobs() if job.phase is not Phase.ENDS]


def _end(job: NodeJob) -> _How | None:
    """How it was ended; None for what has ended by itself meanwhile."""
    try:
        requeue(job)
    except SlurmError as error:
        log.info("end job %s: %s", job.job_id, error)
        return _cancelled(job)
    return _How.REQUEUED if job.batch else _How.CANCELLED


def _cancelled(job: NodeJob) -> _How | None:
    """For what Slurm does not requeue, as `sbatch --no-requeue` asks: its machine ends, and so does it."""
    if job.job_id not in {one.job_id for one in _running()}:
        return None
    with suppress(SlurmError):  # it has just ended, or ends with its machine
        scancel(job.job_id)
    return _How.CANCELLED


def _waiting() -> int:
    """How many jobs wait; the elements of an array that wait together are one, as squeue shows them."""
    return len(squeue("--all", "--states=pending", "--format=%i").splitlines())
