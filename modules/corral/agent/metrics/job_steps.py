"""What the jobs on this node record of their steps: found by their processes, read by a process of the job's user.

The kernel knows which slurmstepd a process descends from, and thereby its job: nobody's numbers become another job's.
Where the steps are and which ranks it has, the process's environment says, which is its user's word.
Sources: proc_pid_stat(5), proc_pid_status(5), proc_pid_environ(5).
"""

import os
import pwd
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from corral.agent.job_evidence.step_files import PAGE_SIZE
from corral.agent.job_evidence.user_reader import JobReadError
from corral.agent.job_library.corral_step import DIRECTORY, RANKS
from corral.agent.metrics.text_format import label_value
from corral.agent.step_daemon import users_of
from corral.model.job_evidence import RankSteps, StepPage
from corral.model.run_forecast import RUN_VARIABLE

_MOST_JOBS = 16  # that one reading looks at: each needs a process
_MOST_ENVIRONMENT = 256 * 1024  # bytes
_STEP = re.compile(rb"slurmstepd: \[(\d+)\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeJob:
    """A job on this node that records its steps. `job_id`: Slurm's number, of an array that of its task.

    `run`: the declared run that it names; empty for none.
    """

    job_id: str
    uid: int
    directory: Path
    ranks: tuple[int, ...]
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSteps:
    """The last steps of a job's processes on this node. `run`: the declared run that it names; empty for none."""

    job_id: str
    user: str
    ranks: tuple[RankSteps, ...]
    run: str = ""


def read_steps(
    node: str, read: Callable[[int, Path, Sequence[int]], StepPage], processes: Path = Path("/proc")
) -> tuple[JobSteps, ...]:
    """The last steps of the jobs on this node. A job whose files cannot be read is left out.

    `read`: as `read_recent_as_user`. A rank that another node's process wrote is none of this node: torchrun and srun
    count differently, and both numbers are in the environment.
    """
    found = []
    for job in node_jobs(processes)[:_MOST_JOBS]:
        with suppress(JobReadError):
            page = read(job.uid, job.directory, job.ranks)
            ranks = tuple(rank for rank in page.ranks if rank.node == node and rank.steps)
            found.append(JobSteps(job_id=job.job_id, user=_name(job.uid), ranks=ranks, run=job.run))
    return tuple(found)


def node_jobs(processes: Path = Path("/proc")) -> tuple[NodeJob, ...]:
    """The jobs of users on this node whose processes record steps, by number."""
    parents = dict(_parents(processes))
    own = os.geteuid()
    jobs: dict[str, NodeJob] = {}
    steps: dict[int, str | None] = {}
    for process in sorted(parents):
        job = _job_of(process, parents, steps, processes)
        variables = _environment(processes / str(process)) if job else {}
        directory = variables.get(DIRECTORY, "")
        uid = _user(processes / str(process)) if directory.startswith("/") else None
        # A program with root's rights may have been started by a user, with an environment of theirs.
        if job is None or uid is None or (uid == 0 and own == 0):
            continue
        run = label_value(variables.get(RUN_VARIABLE, ""))
        known = jobs.setdefault(job, NodeJob(job_id=job, uid=uid, directory=Path(directory), ranks=(), run=run))
        rank = next((int(variables[name]) for name in RANKS if _is_rank(variables.get(name, ""))), 0)
        if (known.uid, known.directory) == (uid, Path(directory)) and len(known.ranks) < PAGE_SIZE:
            ranks = tuple(sorted({*known.ranks, rank}))
            jobs[job] = replace(known, ranks=ranks)
    return tuple(jobs[job] for job in sorted(jobs, key=int))


def _parents(processes: Path) -> Iterator[tuple[int, int]]:
    """Each process with its parent."""
    for entry in processes.iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                # The name is in parentheses, and may contain any.
                yield int(entry.name), int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])


def _job_of(process: int, parents: Mapping[int, int], steps: dict[int, str | None], processes: Path) -> str | None:
    """The job of the nearest slurmstepd above a process; None without one. `steps`: what is known already."""
    path: list[int] = []
    while process in parents and process not in steps:
        path.append(process)
        if job := _step_of(processes / str(process)):
            steps[process] = job
            break
        process = parents[process]
        if process in path:  # the parents were read one after the other, and numbers are used again
            break
    found = steps.get(process)
    steps.update(dict.fromkeys(path, found))
    return found


def _step_of(process: Path) -> str | None:
    """The job of a slurmstepd; None for any other process, whatever it calls itself: slurmstepd is root's."""
    with suppress(OSError):
        found = _STEP.match((process / "cmdline").read_bytes()[:200])
        if found and _user(process) == os.geteuid():
            return found[1].decode()
    return None


def _user(process: Path) -> int | None:
    """The user of a process; None if it has the rights of two, as setuid programs have."""
    with suppress(OSError, ValueError):
        users = {*map(int, users_of(process))}
        return users.pop() if len(users) == 1 else None
    return None


def _environment(process: Path) -> Mapping[str, str]:
    with suppress(OSError), (process / "environ").open("rb") as file:
        text = file.read(_MOST_ENVIRONMENT).decode(errors="replace")
        return {name: value for name, _, value in (one.partition("=") for one in text.split("\0"))}
    return {}


def _is_rank(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 7


def _name(uid: int) -> str:
    try:
        return label_value(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return str(uid)
