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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corral.model.node_names import expand, fold

SPOOL = Path("/var/lib/corral/notes")
BELL = Path("/run/corral/bell")
VERBS = ("resume", "resume-failed", "suspend")
_SUFFIX = ".json"

log = logging.getLogger("corral.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What slurmctld asked for. `jobs`: the nodes that each job waits for, those of no job last. `file` is removed
    when it is done; its name is the same whoever reads it, and makes a repeated launch harmless.

    `asked_at`: when, in seconds since 1970.
    """

    file: Path
    verb: str
    nodes: tuple[str, ...]
    jobs: tuple[tuple[str, ...], ...]
    asked_at: float


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


def _read(file: Path) -> Note:
    held = json.loads(file.read_text(encoding="utf-8"))
    nodes, verb, (asked_at_ns, _, _) = expand(held["nodes"]), held["verb"], file.stem.partition("-")
    if verb not in VERBS:
        raise ValueError(f"{verb!r} is none of {', '.join(VERBS)}")
    jobs = _by_job(nodes, held["slurm"])
    return Note(file=file, verb=verb, nodes=nodes, jobs=jobs, asked_at=int(asked_at_ns) / 1e9)


def _resume_file(given: str | None) -> Any:
    """What Slurm's file says. Nodes are wanted also where it is gone or broken: then nobody knows of their jobs."""
    if given:
        with contextlib.suppress(OSError, ValueError):
            return json.loads(Path(given).read_text(encoding="utf-8"))
    return {}


def _by_job(nodes: Sequence[str], slurm: Any) -> tuple[tuple[str, ...], ...]:
    """The nodes that each job waits for, of those that are wanted; then the others.

    What a job's nodes are called changed in 23.02 from `nodes` to `nodes_resume`, without those that are up already.
    """
    wanted = set(nodes)
    try:
        jobs = [expand(job.get("nodes_resume") or job.get("nodes", "")) for job in slurm.get("jobs", ())]
    except (AttributeError, TypeError, ValueError) as error:
        log.warning("what Slurm says of the jobs that wait for %s cannot be read: %s", fold(nodes), error)
        jobs = []
    named = {node for waited in jobs for node in waited}
    held = [tuple(node for node in waited if node in wanted) for waited in jobs]
    rest = tuple(node for node in nodes if node not in named)
    return tuple(group for group in (*held, rest) if group)
