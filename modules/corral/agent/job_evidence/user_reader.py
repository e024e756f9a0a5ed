"""Have a job's files read by a process of the job's user, so that no link leads root where the user may not read.

That process is the user's: they may stop it or write its answer themselves. So the answer has a time and a size limit,
and only a record of the right shape is accepted. It says nothing that the user could not write into the files, too.
"""

import os
import pwd
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from corral.agent import entry_point
from corral.agent.errors import AgentError
from corral.agent.job_evidence.output_lines import MOST_LINES
from corral.agent.job_evidence.step_files import MOST_RANKS, PAGE_SIZE
from corral.agent.job_evidence.step_summary import LARGEST, MOST_VARIABLES
from corral.model.job_evidence import StepPage
from corral.model.serialization import from_json

_TIMEOUT_S = 25.0  # a file system that hangs must not hang the head
_RECENT_TIMEOUT_S = 5.0  # on a node, which may have several jobs
_MOST_BYTES = 2 << 20
_LONGEST = 2000  # characters; a reason may name three paths


class JobReadError(AgentError):
    """A job's files could not be read."""


def read_as_user(uid: int, directory: Path, start: int) -> StepPage:
    """A page of what the job has written in this directory. Raises JobReadError."""
    return _answer(uid, directory, f"--start={start}", timeout_s=_TIMEOUT_S, start=start)


def read_recent_as_user(uid: int, directory: Path, ranks: Sequence[int]) -> StepPage:
    """What these processes of the job did last. Raises JobReadError. An answer about others is none."""
    page = _answer(uid, directory, f"--ranks={','.join(map(str, ranks))}", timeout_s=_RECENT_TIMEOUT_S)
    found = [rank.rank for rank in page.ranks]
    if len({*found}) < len(found) or not {*found} <= {*ranks}:
        raise JobReadError(f"the process of user {uid} answered about other processes than those of the job")
    return page


def _answer(uid: int, directory: Path, option: str, *, timeout_s: float, start: int = 0) -> StepPage:
    command = (sys.executable, "-I", str(Path(entry_point.__file__)), "read-job", option, str(directory))
    try:
        # Only root can be another user; a box without other users runs everything as one.
        identity = _identity(uid) if os.geteuid() == 0 != uid else {}
        reader = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": "/usr/bin:/bin"},
            **identity,  # type: ignore[call-overload]
        )
    except (OSError, KeyError, subprocess.SubprocessError) as error:
        raise JobReadError(f"no process of user {uid} could be started: {error}") from error
    timer = threading.Timer(timeout_s, reader.kill)
    timer.start()
    try:
        text = reader.stdout.read(_MOST_BYTES + 1)
    finally:
        timer.cancel()
        reader.kill()
        reader.stdout.close()
        reader.wait()
    if len(text) > _MOST_BYTES or not text:
        raise JobReadError(f"{directory} was not read within {timeout_s:.0f} s, or its answer is too long")
    try:
        page = from_json(StepPage, text.decode(errors="replace"))
        _check(page, start)
    except ValueError as error:
        raise JobReadError(f"what the process of user {uid} answered is no record of steps") from error
    return page


def _check(page: StepPage, start: int) -> None:
    """Raises ValueError for a page that `step_files` would not have made: nothing else limits what it says."""
    if len(page.ranks) > PAGE_SIZE or len(page.output) > MOST_LINES or len(page.variables) > MOST_VARIABLES:
        raise ValueError("too long")
    if page.next is not None and (page.next != start + PAGE_SIZE or page.next >= MOST_RANKS):
        raise ValueError("no page follows there")
    values: list[object] = [*page.output, *page.variables, *page.variables.values(), page.problem]
    values += [getattr(rank, field.name) for rank in page.ranks for field in fields(rank)]
    for value in values:
        if isinstance(value, str) and len(value) > _LONGEST:
            raise ValueError("a text is too long")
        if isinstance(value, int | float) and not abs(value) <= LARGEST:  # also for NaN
            raise ValueError("a number is too large")


def _identity(uid: int) -> dict[str, object]:
    person = pwd.getpwuid(uid)
    groups = os.getgrouplist(person.pw_name, person.pw_gid)
    return {"user": uid, "group": person.pw_gid, "extra_groups": groups}
