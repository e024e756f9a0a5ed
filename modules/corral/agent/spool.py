"""What Slurm's programs leave for the agent's keeper: slurmctld waits for them, so they note what is wanted and return.

slurmctld runs as its own user, who reaches neither EC2 nor the metadata service; the keeper runs as root. A note that
is not answered at once is answered at the keeper's next turn, also after a crash of either.
"""

import contextlib
import json
import logging
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from corral.agent.world import Note, WaitingJob
from corral.model.node_names import expand, fold

SPOOL = Path("/var/lib/corral/notes")
BELL = Path("/run/corral/bell")
VERBS = ("resume", "resume-failed", "suspend")
_SUFFIX = ".json"

log = logging.getLogger("corral.agent")


def leave_note(verb: str, nodes: str, environment: Mapping[str, str] = os.environ, spool: Path = SPOOL) -> Path:
    """The file of the new note. It keeps what Slurm's own file says of the jobs, which is gone after some seconds."""
    note = spool / f"{time.time_ns()}-{os.getpid()}{_SUFFIX}"
    draft = note.with_suffix(".new")
    text = json.dumps({"verb": verb, "nodes": nodes, "slurm": _resume_file(environment.get("SLURM_RESUME_FILE"))})
    draft.write_text(text, encoding="utf-8")
    draft.rename(note)
    return note


def ring(bell: Path = BELL) -> None:
    """Tells the keeper that there is a note; without a keeper the note waits."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.setblocking(False)  # a keeper that is busy hears one ring; slurmctld must not wait for it
        line.connect(str(bell))
        line.send(b"!")


def notes(spool: Path = SPOOL) -> Iterator[Note]:
    """All notes, oldest first. One that says nothing is set aside as `.broken`, once and with a line in the log."""
    for file in sorted(spool.glob(f"*{_SUFFIX}")):
        try:
            yield _read(file)
        except (ValueError, KeyError, TypeError) as error:
            log.error("note %s is set aside, it cannot be read: %s", file, error)
            file.rename(file.with_suffix(".broken"))


def remove(note: Note, spool: Path = SPOOL) -> None:
    """When what it asks for is done."""
    (spool / f"{note.key}{_SUFFIX}").unlink(missing_ok=True)


def _read(file: Path) -> Note:
    held = json.loads(file.read_text(encoding="utf-8"))
    nodes, verb, (asked_at_ns, _, _) = expand(held["nodes"]), held["verb"], file.stem.partition("-")
    if verb not in VERBS:
        raise ValueError(f"{verb!r} is none of {', '.join(VERBS)}")
    jobs = _by_job(nodes, held["slurm"])
    return Note(key=file.stem, verb=verb, nodes=nodes, jobs=jobs, asked_at=int(asked_at_ns) / 1e9)


def _resume_file(given: str | None) -> Any:
    """What Slurm's file says. Nodes are wanted also where it is gone or broken: then nobody knows of their jobs."""
    if given:
        with contextlib.suppress(OSError, ValueError):
            return json.loads(Path(given).read_text(encoding="utf-8"))
    return {}


def _by_job(nodes: Sequence[str], slurm: Any) -> tuple[WaitingJob, ...]:
    """The jobs that wait for some of the nodes, each with those.

    What a job's nodes are called changed in 23.02 from `nodes` to `nodes_resume`, without those that are up already.
    """
    wanted = set(nodes)
    try:
        jobs = [(int(job["job_id"]), expand(job.get("nodes_resume") or job.get("nodes", ""))) for job in slurm["jobs"]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if slurm:
            log.warning("what Slurm says of the jobs that wait for %s cannot be read: %r", fold(nodes), error)
        return ()
    held = (WaitingJob(job_id=job, nodes=tuple(node for node in waited if node in wanted)) for job, waited in jobs)
    return tuple(job for job in held if job.nodes)
