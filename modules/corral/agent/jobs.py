"""Jobs on a node, as its own agent sees and moves them. Root on a node may do this; users only with their own jobs."""

from dataclasses import dataclass

from corral.agent.slurm import ask_scripts, scancel, scontrol, squeue

# Not the command: `sbatch --wrap` has none, and srun has one. An array's element has a number of its own here.
_FORMAT = "--Format=JobID:24,BatchFlag:8"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeJob:
    """A job that has nodes. `batch`: it has a script, which can be asked for a checkpoint and requeued."""

    job_id: str
    batch: bool


def jobs_on(node: str) -> tuple[NodeJob, ...]:
    """The jobs that run on a node, sorted. Raises SlurmError."""
    return _read(squeue(f"--nodelist={node}", "--states=running,suspended", _FORMAT))


def running_jobs() -> tuple[NodeJob, ...]:
    """The jobs of the whole cluster that have nodes, also those whose nodes are still being launched. Sorted.

    Raises SlurmError.
    """
    return _read(squeue("--all", "--states=running,suspended,configuring,stopped", _FORMAT))


def _read(lines: str) -> tuple[NodeJob, ...]:
    found = (line.split() for line in lines.splitlines() if line.strip())
    return tuple(sorted((NodeJob(job_id=job, batch=flag == "1") for job, flag in found), key=_number))


def ask_for_checkpoint(job: NodeJob) -> bool:
    """True if the job's script knows the signal, and got it to pass it on to the program. Raises SlurmError."""
    return job.batch and bool(ask_scripts([job.job_id]))


def requeue(job: NodeJob) -> None:
    """Lets a batch job start again elsewhere; another one ends here. Raises SlurmError."""
    if job.batch:
        scontrol("requeue", job.job_id)
    else:
        scancel(job.job_id)


def _number(job: NodeJob) -> int:
    return int(job.job_id)
