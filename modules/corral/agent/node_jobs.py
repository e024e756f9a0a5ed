"""Jobs on a node, as its agent lists, signals and requeues them. Needs root; users may with their own jobs."""

from dataclasses import dataclass
from enum import StrEnum

from corral.agent.slurm import HAVE_NODES, JOB_FORMAT, lines, requeue_job, signal_script, squeue


class Phase(StrEnum):
    """The phase of a job that has nodes."""

    STARTING = "begins"  # some nodes are still launching: it has nothing to save, and loses signals
    RUNNING = "runs"
    ENDING = "ends"  # requeued, cancelled or over; its processes have KillWait to save


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeJob:
    """A job that has nodes. `batch`: it has a script, so it can be signalled and requeued."""

    job_id: str
    batch: bool
    phase: Phase = Phase.RUNNING


def jobs_on(node: str) -> tuple[NodeJob, ...]:
    """The jobs that have processes on a node or soon will, sorted. Raises SlurmError.

    An ending job is included until it has ended on this node: squeue shows the rest of its nodes.
    """
    return _read(squeue(f"--nodelist={node}", HAVE_NODES, JOB_FORMAT))


def running_jobs() -> tuple[NodeJob, ...]:
    """The jobs of the cluster that have nodes, including launching ones, sorted. Raises SlurmError."""
    return _read(squeue("--all", HAVE_NODES, JOB_FORMAT))


def _read(listed: str) -> tuple[NodeJob, ...]:
    found = (line.split() for line in lines(listed))
    jobs = (NodeJob(job_id=job, batch=flag == "1", phase=_phase(state)) for job, flag, state in found)
    return tuple(sorted(jobs, key=_number))


def _phase(state: str) -> Phase:
    match state:
        case "CONFIGURING":
            return Phase.STARTING
        case "COMPLETING":
            return Phase.ENDING
        case _:
            return Phase.RUNNING


def request_checkpoint(job: NodeJob) -> bool:
    """Signal the job's script; True if the script handles the signal. Raises SlurmError."""
    return job.batch and signal_script(job.job_id)


def requeue(job: NodeJob) -> None:
    """Requeue a batch job; cancel any other. Raises SlurmError."""
    requeue_job(job.job_id, is_batch=job.batch)


def _number(job: NodeJob) -> int:
    return int(job.job_id)
