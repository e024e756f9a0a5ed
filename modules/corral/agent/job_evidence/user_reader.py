"""Have a job's files read by a process of the job's user, so that no link leads root where the user may not read.

That process is the user's: they may stop it, trace it, keep its pipe, or write its answer themselves. So root waits for
nothing of it without a limit, and only a record of the right shape and size is accepted. It says nothing that the user
could not write into the files, too.
"""

import os
import pwd
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
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
_END_S = 1.0  # in which a killed process ends
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
        identity = _identity(uid) if os.geteuid() == 0 != uid else ()
        reader = subprocess.Popen(
            (*identity, *command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": "/usr/bin:/bin"},
        )
    except (OSError, KeyError, subprocess.SubprocessError) as error:
        raise JobReadError(f"no process of user {uid} could be started: {error}") from error
    assert reader.stdout is not None
    try:
        text = _read(reader.stdout.fileno(), time.monotonic() + timeout_s)
    finally:
        reader.kill()
        reader.stdout.close()
        with suppress(subprocess.TimeoutExpired):  # a process that its user traces ends for us when they let it
            reader.wait(_END_S)
    if not text:
        raise JobReadError(f"{directory} was not read within {timeout_s:.0f} s, or its answer is too long")
    try:
        page = from_json(StepPage, text.decode(errors="replace"))
        _check(page, start)
    except ValueError as error:
        raise JobReadError(f"what the process of user {uid} answered is no record of steps") from error
    return page


def _read(pipe: int, deadline: float) -> bytes:
    """All that comes until the end of the file. Empty if it is too long, or does not end by then.

    The end of the process is not the end of the file: its user may hold a copy of the pipe (pidfd_getfd(2)).
    """
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    text = bytearray()
    while len(text) <= _MOST_BYTES and (left := deadline - time.monotonic()) > 0:
        if poll.poll(left * 1000):
            part = os.read(pipe, 65536)
            if not part:
                return bytes(text)
            text += part
    return b""


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


def _identity(uid: int) -> tuple[str, ...]:
    """A command that becomes this user and runs another one.

    With `user=` Popen would wait for a process of the user, which they may stop before it runs its program.
    """
    person = pwd.getpwuid(uid)
    groups = ",".join(map(str, os.getgrouplist(person.pw_name, person.pw_gid)))
    return ("setpriv", f"--reuid={uid}", f"--regid={person.pw_gid}", f"--groups={groups}")
