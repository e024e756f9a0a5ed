"""Drain a whole cluster before its end: close the queues, let running jobs save, then end them.

Queues are closed before the jobs are listed, so that none starts in between. An interrupted drain can be repeated. A
drain that must not end the jobs it finds opens the queues that it closed.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path

from corral.agent.cluster.partition_state import not_open
from corral.agent.events import Event, EventLog
from corral.agent.node_jobs import NodeJob, Phase, request_checkpoint, requeue, running_jobs
from corral.agent.slurm import SlurmError, lines, open_queue, scancel, scontrol, squeue, stop_queue
from corral.model.head_report import DrainResult

# On /run: lost with the head, which `corral down` deletes within minutes. Alerts are silent meanwhile.
MARK = Path("/run/corral/draining")
_ENDS_SOON_S = 1800.0
GRACE_S = 120.0  # as long as a spot notice, for which jobs are prepared
_POLL_EVERY_S = 1.0
# For programs after SIGTERM (KillWait's default is 30 s) and epilogs; then the machines are terminated anyway.
_ENDS_WITHIN_S = 60.0

log = logging.getLogger("corral.agent")


def drain_before_down(
    queues: Sequence[str], journal: EventLog, *, now: bool, grace_s: float, mark: Path = MARK
) -> DrainResult:
    """As `drain_cluster`, and `is_draining` from now on, unless it is refused. Raises SlurmError."""
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()
    done = drain_cluster(queues, journal, now=now, grace_s=grace_s)
    if done.refused:
        mark.unlink()
    return done


def is_draining(mark: Path = MARK, clock: Callable[[], float] = time.time) -> bool:
    """Whether such a drain began less than half an hour ago: the head is about to be deleted."""
    try:
        return clock() - mark.stat().st_mtime < _ENDS_SOON_S
    except FileNotFoundError:
        return False


class _Ending(Enum):
    REQUEUED = auto()
    CANCELLED = auto()


def drain_cluster(
    queues: Sequence[str],
    journal: EventLog,
    *,
    now: bool,
    grace_s: float = GRACE_S,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> DrainResult:
    """Drain the cluster, and return what was done. Without `now`, a cluster with running jobs is left as it was.

    `grace_s`: how long jobs have between the checkpoint signal and their end. Raises SlurmError.
    """
    stopped = not_open(queues)
    closed = [queue for queue in queues if queue not in stopped]
    for queue in closed:
        stop_queue(queue)
    found, waiting = _running(), _waiting()
    if found and not now:
        for queue in closed:
            open_queue(queue)
        return DrainResult(refused=True, waiting=waiting)
    signalled = _signal(found, grace_s)
    journal.log_event(Event.DRAINING, f"{len(found)} jobs run; no more start", jobs=[job.job_id for job in found])
    ids = {job.job_id for job in found}
    left = _await(lambda: [job for job in _running() if job.job_id in ids], grace_s if signalled else 0.0, sleep, clock)
    forced = {job.job_id: how for job in left if (how := _end(job))}
    _await(running_jobs, _ENDS_WITHIN_S, sleep, clock)
    return DrainResult(
        refused=False,
        signalled=signalled,
        ended=tuple(job.job_id for job in found if job.job_id not in forced),
        requeued=tuple(job for job, how in forced.items() if how is _Ending.REQUEUED),
        cancelled=tuple(job for job, how in forced.items() if how is _Ending.CANCELLED),
        waiting=waiting,
    )


def _signal(found: Sequence[NodeJob], grace_s: float) -> tuple[str, ...]:
    """Signal batch jobs, and notify the users of interactive ones. Returns the signalled jobs."""
    signalled: list[str] = []
    for job in found:
        with suppress(SlurmError):  # it has just ended, or its user is gone
            if job.batch:
                signalled += [job.job_id] if job.phase is Phase.RUNNING and request_checkpoint(job) else []
            else:
                scontrol("notify", job.job_id, f"corral: the cluster shuts down, this job ends in {grace_s:.0f} s")
    return tuple(signalled)


def _await(
    jobs: Callable[[], Sequence[NodeJob]], for_s: float, sleep: Callable[[float], None], clock: Callable[[], float]
) -> Sequence[NodeJob]:
    """The jobs left after this time."""
    until = clock() + for_s
    while (left := jobs()) and clock() < until:
        sleep(_POLL_EVERY_S)
    return left


def _running() -> list[NodeJob]:
    """The running jobs without those that are already ending."""
    return [job for job in running_jobs() if job.phase is not Phase.ENDING]


def _end(job: NodeJob) -> _Ending | None:
    """How the job was ended; None if it has ended meanwhile."""
    try:
        requeue(job)
    except SlurmError as error:
        log.info("end job %s: %s", job.job_id, error)
        return _cancelled(job)
    return _Ending.REQUEUED if job.batch else _Ending.CANCELLED


def _cancelled(job: NodeJob) -> _Ending | None:
    """Cancel a job that Slurm does not requeue, e.g. with `sbatch --no-requeue`."""
    if job.job_id not in {one.job_id for one in _running()}:
        return None
    with suppress(SlurmError):  # it has just ended, or will end with its machine
        scancel(job.job_id)
    return _Ending.CANCELLED


def _waiting() -> int:
    """How many jobs wait; waiting elements of an array count as one, as in squeue."""
    return len(lines(squeue("--all", "--states=pending", "--format=%i")))
