"""Who works on a stack: corral's own lock, which other corrals can wait for, and what Pulumi's lock says of its holder.

Corral's lock is a file lock that the engine's supervisor inherits, so it lasts until the engine has ended even where
the command was killed. Pulumi's lock is a file in the backend that a killed engine leaves behind.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shlex
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

from corral.engine.errors import EngineError

LOOK_S = 0.2  # between two attempts at a lock; the kernel has no lock with a timeout
REUSED_S = 2  # seconds: the backend's lock tells whole seconds, and clocks of a process and a file differ a little
BACKEND_LOCK = re.compile(r"created by (?P<user>\S+)@(?P<host>\S+) \(pid (?P<pid>\d+)\) at (?P<since>\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process that works on a stack, as its lock tells."""

    pid: int
    since: datetime
    command: str = ""
    host: str = ""
    user: str = ""

    @property
    def lives(self) -> bool:
        """True unless this machine knows that the process is gone."""
        if self.host and self.host != socket.gethostname():
            return True
        started = _started(self.pid)
        return started is not None and (started - self.since).total_seconds() <= REUSED_S


def state_directory(url: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Where locks and logs of stacks in this backend belong: beside the states if these are files, else the user's."""
    if (parts := urlsplit(url)).scheme == "file":
        return Path(unquote(parts.netloc + parts.path)).expanduser() / ".corral"
    if chosen := environ.get("CORRAL_STATE_DIR"):
        root = Path(chosen)
    elif state := environ.get("XDG_STATE_HOME"):
        root = Path(state) / "corral"
    else:
        root = Path(environ.get("HOME") or "~").expanduser() / ".local/state/corral"
    return root / "stacks" / hashlib.sha256(url.encode()).hexdigest()[:16]


@contextmanager
def held(file: Path, what: str, *, wait: bool, say: Callable[[str], None]) -> Iterator[int]:
    """The descriptor of the lock, held for the block and as long as a process that inherits it lives.

    An engine whose command was killed is waited for, as it ends by itself. A living command is waited for on request.
    Raises EngineError where another command has the lock.
    """
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _take(handle, what, wait=wait, say=say)
        record = {"pid": os.getpid(), "since": datetime.now(UTC).isoformat(timespec="seconds"), "command": _command()}
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(record).encode(), 0)
        yield handle
    finally:
        os.close(handle)


def backend_holders(text: str) -> tuple[Holder, ...]:
    """Who holds Pulumi's lock of a stack, from the CLI's complaint; nobody if it complains of something else."""
    if "the stack is currently locked by" not in text:
        return ()
    return tuple(
        Holder(
            pid=int(found["pid"]), since=datetime.fromisoformat(found["since"]), host=found["host"], user=found["user"]
        )
        for found in BACKEND_LOCK.finditer(text)
    )


def file_holders(directory: Path) -> tuple[Holder, ...]:
    """Who holds Pulumi's lock of a stack in a backend of files, by the stack's directory of locks."""
    found = []
    for file in sorted(directory.glob("*.json")):
        with suppress(OSError, ValueError, KeyError):  # it goes, or is being written: the engine itself will complain
            record = json.loads(file.read_bytes())
            since = datetime.fromisoformat(record["timestamp"])
            found.append(
                Holder(pid=int(record["pid"]), since=since, host=str(record["hostname"]), user=str(record["username"]))
            )
    return tuple(found)


def _take(handle: int, what: str, *, wait: bool, say: Callable[[str], None]) -> None:
    told = ""
    while not _try(handle):
        holder = _read(handle)
        if holder and holder.lives and not wait:
            raise EngineError(f"another corral {_who(holder)} is at work on {what}", ("add --wait to wait for it",))
        if holder and holder.lives:
            now = f"another corral {_who(holder)} is at work on {what}; waiting for it"
        else:
            now = f"the engine of an interrupted corral is still finishing what it began on {what}; waiting for it"
        if now != told:
            say(now)
            told = now
        time.sleep(LOOK_S)


def _try(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(handle: int) -> Holder | None:
    try:
        record = json.loads(os.pread(handle, 4096, 0))
        return Holder(
            pid=int(record["pid"]), since=datetime.fromisoformat(record["since"]), command=str(record["command"])
        )
    except (ValueError, KeyError):
        return None  # between the lock and its record


def _who(holder: Holder) -> str:
    return f"(process {holder.pid}, `{holder.command}`, since {holder.since.astimezone():%H:%M:%S})"


def _command() -> str:
    return " ".join(["corral", *map(shlex.quote, sys.argv[1:])])[:200]


def _started(pid: int) -> datetime | None:
    """When the process started; None if there is none. Where the system does not tell, the beginning of time."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        booted = re.search(r"^btime (\d+)", Path("/proc/stat").read_text(), re.MULTILINE)
    except OSError:
        return datetime.min.replace(tzinfo=UTC)
    if fields[0] in ("Z", "X"):
        return None
    ticks = int(fields[19])  # starttime, field 22 of proc(5), in clock ticks since boot
    since = int(booted[1]) if booted else 0
    return datetime.fromtimestamp(since + ticks / os.sysconf("SC_CLK_TCK"), UTC)
