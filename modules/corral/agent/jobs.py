"""Jobs on a node, as its own agent sees and moves them. Root on a node may do this; users only with their own jobs."""

from dataclasses import dataclass
from enum import StrEnum

from corral.agent.slurm import HAVE_NODES, JOB_FORMAT, ask_scripts, requeue_job, squeue


class Phase(StrEnum):
    """How far a job is that has nodes."""

    BEGINS = "begins"  # other nodes of its are still being launched: it has nothing to save, and signals are lost
    RUNS = "runs"
    ENDS = "ends"  # it was requeued, was cancelled or is over, and its processes have KillWait to save what they have


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeJob:
    """A job that has nodes. `batch`: it has a script, which can be asked for a checkpoint and requeued."""

    job_id: str
    batch: bool
    phase: Phase = Phase.RUNS


def jobs_on(node: str) -> tuple[NodeJob, ...]:
    """The jobs that have processes on a node or soon will, sorted. Raises SlurmError.

    One that ends is there as long as it ends on this node: squeue shows what is left of its nodes.
    """
    return _read(squeue(f"--nodelist={node}", HAVE_NODES, JOB_FORMAT))


def running_jobs() -> tuple[NodeJob, ...]:
    """The jobs of the whole cluster that have nodes, also those whose nodes are still being launched. Sorted.

    Raises SlurmError.
    """
    return _read(squeue("--all", HAVE_NODES, JOB_FORMAT))


def _read(lines: str) -> tuple[NodeJob, ...]:
    found = (line.split() for line in lines.splitlines() if line.strip())
    jobs = (NodeJob(job_id=job, batch=flag == "1", phase=_phase(state)) for job, flag, state in found)
    return tuple(sorted(jobs, key=_number))


def _phase(state: str) -> Phase:
    match state:
        case "CONFIGURING":
            return Phase.BEGINS
        case "COMPLETING":
            return Phase.ENDS
        case _:
            return Phase.RUNS


def ask_for_checkpoint(job: NodeJob) -> bool:
    """True if the job's script knows the signal, and got it to pass it on to the program. Raises SlurmError."""
    return job.batch and bool(ask_scripts([job.job_id]))


def requeue(job: NodeJob) -> None:
    """Lets a batch job start again elsewhere; another one ends here. Raises SlurmError."""
    requeue_job(job.job_id, is_batch=job.batch)


def _number(job: NodeJob) -> int:
    return int(job.job_id)
