"""Locks of stacks: corral's own lock, which other corral processes can wait for, and the holders of Pulumi's lock.

Corral's lock is a file lock that the engine's supervisor inherits: it lasts until the engine has ended, even if the
command was killed. Pulumi's lock is a file in the backend, which a killed engine leaves behind.
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

from corral.engine.engine_errors import EngineError

POLL_S = 0.2  # between two attempts at a lock; the kernel has no lock with a timeout
PID_REUSE_S = 2  # the backend's lock has whole seconds, and the clocks of processes and files differ slightly
BACKEND_LOCK = re.compile(r"created by (?P<user>\S+)@(?P<host>\S+) \(pid (?P<pid>\d+)\) at (?P<since>\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LockHolder:
    """The process that holds the lock of a stack."""

    pid: int
    since: datetime
    command: str = ""
    host: str = ""
    user: str = ""

    @property
    def is_alive(self) -> bool:
        """True unless the process ran on this host and is gone."""
        if self.host and self.host != socket.gethostname():
            return True
        started = _started(self.pid)
        return started is not None and (started - self.since).total_seconds() <= PID_REUSE_S


def state_directory(url: str, environ: Mapping[str, str] = os.environ) -> Path:
    """The directory for locks and logs of stacks: in a file backend, otherwise in the user's state directory."""
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
def hold_lock(file: Path, what: str, *, wait: bool, write: Callable[[str], None]) -> Iterator[int]:
    """The descriptor of the lock, held for the block and as long as a process that inherits it runs.

    Waits for an engine whose command was killed, since it ends on its own; waits for a running command only with
    `wait`. Raises EngineError if another command holds the lock.
    """
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _take(handle, what, wait=wait, write=write)
        record = {"pid": os.getpid(), "since": datetime.now(UTC).isoformat(timespec="seconds"), "command": _command()}
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(record).encode(), 0)
        yield handle
    finally:
        os.close(handle)


def lock_holders_in_error(text: str) -> tuple[LockHolder, ...]:
    """The holders of Pulumi's lock, from an error of the CLI; empty for other errors."""
    if "the stack is currently locked by" not in text:
        return ()
    return tuple(
        LockHolder(
            pid=int(found["pid"]), since=datetime.fromisoformat(found["since"]), host=found["host"], user=found["user"]
        )
        for found in BACKEND_LOCK.finditer(text)
    )


def file_lock_holders(directory: Path) -> tuple[LockHolder, ...]:
    """The holders of Pulumi's lock in a file backend, from the stack's directory of locks."""
    found = []
    for file in sorted(directory.glob("*.json")):
        with suppress(OSError, ValueError, KeyError):  # being removed or written; the engine reports real errors
            record = json.loads(file.read_bytes())
            since = datetime.fromisoformat(record["timestamp"])
            found.append(
                LockHolder(
                    pid=int(record["pid"]), since=since, host=str(record["hostname"]), user=str(record["username"])
                )
            )
    return tuple(found)


def _take(handle: int, what: str, *, wait: bool, write: Callable[[str], None]) -> None:
    reported = ""
    while not _try(handle):
        holder = _read(handle)
        if holder and holder.is_alive and not wait:
            raise EngineError(f"another corral {_who(holder)} is working on {what}", ("add --wait to wait for it",))
        if holder and holder.is_alive:
            now = f"another corral {_who(holder)} is working on {what}; waiting for it"
        else:
            now = f"the engine of an interrupted corral is still finishing its work on {what}; waiting for it"
        if now != reported:
            write(now)
            reported = now
        time.sleep(POLL_S)


def _try(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(handle: int) -> LockHolder | None:
    try:
        record = json.loads(os.pread(handle, 4096, 0))
        return LockHolder(
            pid=int(record["pid"]), since=datetime.fromisoformat(record["since"]), command=str(record["command"])
        )
    except (ValueError, KeyError):
        return None  # between the lock and its record


def _who(holder: LockHolder) -> str:
    return f"(process {holder.pid}, `{holder.command}`, since {holder.since.astimezone():%H:%M:%S})"


def _command() -> str:
    return " ".join(["corral", *map(shlex.quote, sys.argv[1:])])[:200]


def _started(pid: int) -> datetime | None:
    """When the process started; None if it does not exist; the minimal datetime if the system does not say."""
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
