"""The cluster's events: lines of JSON on the head's state volume, and lines of the log.

Every decision of the autoscaler is one event, however many nodes it concerns. docs/events.md lists the kinds.
"""

import contextlib
import json
import logging
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

EVENTS = Path("/var/lib/corral/events.jsonl")
_MAX_BYTES = 32 * 1024 * 1024  # bytes; then the file becomes events.1.jsonl, replacing the former one

log = logging.getLogger("corral.agent")


class Event(StrEnum):
    """The kinds of events."""

    LAUNCHED = "launched"
    REFUSED = "refused"
    RELEASED = "released"
    LAUNCH_FAILED = "launch-failed"
    LAUNCH_WAITS = "launch-waits"
    ENDED = "ended"
    TERMINATED = "terminated"
    MARKED_DOWN = "marked-down"
    REPLACED = "replaced"
    UNDRAINED = "undrained"
    POWERED_UP = "powered-up"
    STOPPED = "stopped"
    STARTED = "job-started"
    WAITS = "job-waits"
    APPLIED = "applied"
    CONFIGURATION_REFUSED = "configuration-refused"
    ENDS_SOON = "ends-soon"
    CLUSTER_ENDS = "cluster-ends"
    CLUSTER_CONTINUES = "cluster-continues"
    AUTOSCALER_STARTED = "autoscaler-started"
    UP = "up"
    REBOOTED = "rebooted"
    NOTICE = "notice"
    DRAINED = "drained"
    DRAINING = "draining"
    USER_ADDED = "user-added"
    USER_REMOVED = "user-removed"
    USER_REFUSED = "user-refused"
    ACCOUNTS_CHANGED = "accounts-changed"
    ACCOUNTS_REFUSED = "accounts-refused"
    DIRECTORY_FAILED = "directory-failed"
    LOGIN = "login"
    SUDO = "sudo"


_WARNINGS = frozenset(
    {
        *(Event.REFUSED, Event.LAUNCH_FAILED, Event.TERMINATED, Event.MARKED_DOWN, Event.STOPPED),
        *(Event.NOTICE, Event.DRAINED, Event.REBOOTED, Event.USER_REFUSED, Event.ACCOUNTS_REFUSED),
        Event.DIRECTORY_FAILED,
    }
)


class EventLog:
    """The event log. `file`: None to write to the agent's log only."""

    def __init__(self, file: Path | None = EVENTS) -> None:
        self._file = file

    def log_event(self, event: Event, text: str, *, at: float | None = None, **facts: object) -> None:
        """Log an event. A full disk loses events, and nothing else.

        `at`: when it happened, in seconds since 1970 (default: now). Lines are in the order of writing.
        """
        log.log(logging.WARNING if event in _WARNINGS else logging.INFO, "%s %s", event, text)
        if self._file is None:
            return
        record = {"at": timestamp(time.time() if at is None else at), "event": str(event), "text": text, **facts}
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                rotated(self._file).chmod(0o600)
            if self._file.exists() and self._file.stat().st_size > _MAX_BYTES:
                self._file.replace(rotated(self._file))
            line = json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
            with os.fdopen(_open_for_root(self._file), "ab", buffering=0) as lines:
                lines.write(_missing_newline(self._file) + line)

    def lines(self) -> Iterator[str]:
        """The lines of the event log, oldest first, including truncated ones."""
        return iter(()) if self._file is None else read_lines(self._file)


def read_lines(file: Path = EVENTS) -> Iterator[str]:
    """The lines of the file and of its predecessor."""
    for each in (rotated(file), file):
        with contextlib.suppress(FileNotFoundError), each.open(encoding="utf-8", errors="replace") as lines:
            yield from (line.rstrip("\n") for line in lines if line != "\n")


def _open_for_root(file: Path) -> int:
    """Open a file that nobody else may read: it has the commands of sudo and the addresses of logins."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.fchmod(handle, 0o600)  # one of an agent that left it to everybody
    return handle


def _missing_newline(file: Path) -> bytes:
    """The newline that a truncated last line lacks; without it the next event would be lost too."""
    with file.open("rb") as lines:
        if not lines.seek(0, os.SEEK_END):
            return b""
        lines.seek(-1, os.SEEK_END)
        return b"" if lines.read(1) == b"\n" else b"\n"


def rotated(file: Path) -> Path:
    """The path of the predecessor of this file."""
    return file.with_suffix(".1.jsonl")


def timestamp(at: float) -> str:
    """The time in the format of the lines."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
