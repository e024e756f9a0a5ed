"""The queue of power requests between slurmctld and the autoscaler. `resume_program` writes it.

slurmctld runs as its own user, which can reach neither EC2 nor the metadata service; the autoscaler runs as root. A
request that is not served at once is served in a later cycle, even after a crash of either.
"""

import json
import logging
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from corral.agent.autoscaler import resume_program
from corral.agent.cluster.models import PowerRequest, WaitingJob
from corral.model.node_names import expand, fold

SPOOL = Path(resume_program.SPOOL)
WAKE_SOCKET = Path(resume_program.WAKE_SOCKET)
_SLURM_USER = "slurm"
VERBS = ("resume", "resume-failed", "suspend")

log = logging.getLogger("corral.agent")


def prepare_spool(root: Path = Path("/")) -> None:
    """Create the directory that slurmctld's user writes to."""
    spool = root / SPOOL.relative_to("/")
    spool.mkdir(parents=True, exist_ok=True)
    shutil.chown(spool, _SLURM_USER)
    spool.chmod(0o700)


def pending_requests(spool: Path = SPOOL) -> Iterator[PowerRequest]:
    """All requests, oldest first. An invalid one is logged once and renamed to `.broken`.

    One that cannot be read now stays for the next call.
    """
    for file in sorted(spool.glob(f"*{resume_program.SUFFIX}")):
        try:
            yield _read(file)
        except (ValueError, KeyError, TypeError) as error:
            log.error("request %s is invalid, renamed to *.broken: %s", file, error)
            _set_aside(file)
        except FileNotFoundError:  # removed meanwhile
            continue
        except OSError as error:
            log.error("request %s cannot be read now: %s", file, error)


def without_suspended(requests: Sequence[PowerRequest]) -> tuple[PowerRequest, ...]:
    """These requests, oldest first; those to resume without the nodes that Slurm has suspended since.

    A resume can be left with its nodes suspended, if the autoscaler is killed after it has given up. Served again, it
    would launch machines that the suspend then terminates, although a later resume may have put a job on them.
    """
    suspended, kept = set[str](), list[PowerRequest]()
    for request in reversed(requests):
        if request.verb == "resume":
            kept.append(request.without(suspended))
        else:
            suspended.update(request.nodes)
            kept.append(request)
    return tuple(reversed(kept))


def remove(request: PowerRequest, spool: Path = SPOOL) -> None:
    """Remove a request that is served."""
    (spool / f"{request.key}{resume_program.SUFFIX}").unlink(missing_ok=True)


def _set_aside(file: Path) -> None:
    try:
        file.rename(file.with_suffix(".broken"))
    except OSError as error:  # the next call tries again
        log.error("request %s cannot be renamed: %s", file, error)


def _read(file: Path) -> PowerRequest:
    line, _, slurm = _text(file).partition("\n")
    held = json.loads(line)
    nodes, verb, (requested_at_ns, _, _) = expand(held["nodes"]), held["verb"], file.stem.partition("-")
    if verb not in VERBS:
        raise ValueError(f"invalid verb {verb!r}, expected one of {', '.join(VERBS)}")
    jobs = _waiting_jobs(nodes, _parse_resume_file(slurm))
    return PowerRequest(key=file.stem, verb=verb, nodes=nodes, jobs=jobs, requested_at=int(requested_at_ns) / 1e9)


def _text(file: Path) -> str:
    """The text of a regular file. Raises ValueError for anything else: the slurm user owns the directory, root reads.

    A pipe would block forever; a link would expose files that the slurm user may not read.
    """
    if not stat.S_ISREG(file.lstat().st_mode):
        raise ValueError("not a regular file")
    handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)  # it may have been replaced
    with os.fdopen(handle, encoding="utf-8", errors="replace") as held:
        return held.read()


def _parse_resume_file(text: str) -> Any:
    """Slurm's file about the waiting jobs; empty if it is missing or broken."""
    try:
        return json.loads(text)
    except ValueError:
        return {}


def _waiting_jobs(nodes: Sequence[str], slurm: Any) -> tuple[WaitingJob, ...]:
    """The jobs that wait for some of the nodes, each with these and with its allocated nodes.

    `nodes` are all of a job's in 22.05; from 23.02 on they are `nodes_alloc`.
    """
    requested = set(nodes)
    try:
        jobs = [(int(job["job_id"]), expand(_nodes_of(job))) for job in slurm["jobs"]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if slurm:
            log.warning("Slurm's resume file for %s cannot be read: %r", fold(nodes), error)
        return ()
    held = (
        WaitingJob(
            job_id=job,
            nodes=tuple(node for node in given if node in requested),
            allocated_nodes=tuple(node for node in given if node not in requested),
        )
        for job, given in jobs
    )
    return tuple(job for job in held if job.nodes)


def _nodes_of(job: Mapping[str, str]) -> str:
    return job.get("nodes_alloc") or job.get("nodes_resume") or job.get("nodes", "")
