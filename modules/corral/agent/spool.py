"""What Slurm's programs leave for the agent's keeper (`note`), as the keeper reads it.

slurmctld runs as its own user, who reaches neither EC2 nor the metadata service; the keeper runs as root. A note that
is not answered at once is answered at the keeper's next turn, also after a crash of either.
"""

import json
import logging
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from corral.agent import note
from corral.agent.world import Note, WaitingJob
from corral.model.node_names import expand, fold

SPOOL = Path(note.SPOOL)
BELL = Path(note.BELL)
_SLURM_USER = "slurm"
VERBS = ("resume", "resume-failed", "suspend")

log = logging.getLogger("corral.agent")


def prepare_spool(root: Path = Path("/")) -> None:
    """Makes the directory that slurmctld's user writes to."""
    spool = root / SPOOL.relative_to("/")
    spool.mkdir(parents=True, exist_ok=True)
    shutil.chown(spool, _SLURM_USER)
    spool.chmod(0o700)


def notes(spool: Path = SPOOL) -> Iterator[Note]:
    """All notes, oldest first. One that says nothing is set aside as `.broken`, once and with a line in the log.

    One that the disk does not give now stays for the next look.
    """
    for file in sorted(spool.glob(f"*{note.SUFFIX}")):
        try:
            yield _read(file)
        except (ValueError, KeyError, TypeError) as error:
            log.error("note %s is set aside, it cannot be read: %s", file, error)
            _set_aside(file)
        except FileNotFoundError:  # somebody has taken it away
            continue
        except OSError as error:
            log.error("note %s cannot be read now: %s", file, error)


def remove(answered: Note, spool: Path = SPOOL) -> None:
    """When what it asks for is done."""
    (spool / f"{answered.key}{note.SUFFIX}").unlink(missing_ok=True)


def _set_aside(file: Path) -> None:
    try:
        file.rename(file.with_suffix(".broken"))
    except OSError as error:  # it is met again at the next look
        log.error("note %s cannot be set aside: %s", file, error)


def _read(file: Path) -> Note:
    line, _, slurm = _text(file).partition("\n")
    held = json.loads(line)
    nodes, verb, (asked_at_ns, _, _) = expand(held["nodes"]), held["verb"], file.stem.partition("-")
    if verb not in VERBS:
        raise ValueError(f"{verb!r} is none of {', '.join(VERBS)}")
    jobs = _by_job(nodes, _slurms(slurm))
    return Note(key=file.stem, verb=verb, nodes=nodes, jobs=jobs, asked_at=int(asked_at_ns) / 1e9)


def _text(file: Path) -> str:
    """What a file holds. Raises ValueError for what is none: the directory is the slurm user's, and root reads here.

    Reading from a pipe would never end; a link would show files that are not that user's.
    """
    if not stat.S_ISREG(file.lstat().st_mode):
        raise ValueError("it is no regular file")
    handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)  # it may be another by now
    with os.fdopen(handle, encoding="utf-8", errors="replace") as held:
        return held.read()


def _slurms(text: str) -> Any:
    """What Slurm's file said. Nodes are wanted also where it was gone or is broken: then nobody knows of their jobs."""
    try:
        return json.loads(text)
    except ValueError:
        return {}


def _by_job(nodes: Sequence[str], slurm: Any) -> tuple[WaitingJob, ...]:
    """The jobs that wait for some of the nodes, each with those and with the ones that it has.

    `nodes` are all of a job's in 22.05; from 23.02 on they are `nodes_alloc`.
    """
    wanted = set(nodes)
    try:
        jobs = [(int(job["job_id"]), expand(_nodes_of(job))) for job in slurm["jobs"]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if slurm:
            log.warning("what Slurm says of the jobs that wait for %s cannot be read: %r", fold(nodes), error)
        return ()
    held = (
        WaitingJob(
            job_id=job,
            nodes=tuple(node for node in given if node in wanted),
            beside=tuple(node for node in given if node not in wanted),
        )
        for job, given in jobs
    )
    return tuple(job for job in held if job.nodes)


def _nodes_of(job: Mapping[str, str]) -> str:
    return job.get("nodes_alloc") or job.get("nodes_resume") or job.get("nodes", "")
