"""What happens to a cluster, as lines of JSON on the head's state volume, and as words in the log.

Every decision of the keeper is one event, however many nodes it concerns. docs/events.md lists the kinds.
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
_LONGEST = 32 * 1024 * 1024  # bytes; then the file becomes events.1.jsonl, and the one before that is gone

log = logging.getLogger("corral.agent")


class Event(StrEnum):
    """The kinds."""

    LAUNCHED = "launched"
    REFUSED = "refused"
    RETURNED = "returned"
    WITHOUT = "without"
    ENDED = "ended"
    TERMINATED = "terminated"
    FORGOTTEN = "forgotten"
    REPLACED = "replaced"
    UNDRAINED = "undrained"
    WOKEN = "woken"
    STOPPED = "stopped"
    STARTED = "job-started"
    WAITS = "job-waits"
    APPLIED = "applied"
    CONFIGURATION_REFUSED = "configuration-refused"
    ENDS_SOON = "ends-soon"
    CLUSTER_ENDS = "cluster-ends"
    GOES_ON = "cluster-goes-on"
    BEGAN = "keeper-began"
    UP = "up"
    REBOOTED = "rebooted"
    NOTICE = "notice"
    DRAINED = "drained"
    DRAINING = "draining"


_GRAVE = frozenset(
    {
        *(Event.REFUSED, Event.WITHOUT, Event.TERMINATED, Event.FORGOTTEN, Event.STOPPED),
        *(Event.NOTICE, Event.DRAINED, Event.REBOOTED),
    }
)


class Journal:
    """Where events go. `file`: None for the log alone."""

    def __init__(self, file: Path | None = EVENTS) -> None:
        self._file = file

    def tell(self, event: Event, text: str, *, at: float | None = None, **facts: object) -> None:
        """Writes one down. A disk that is full loses events, and nothing else.

        `at`: when it happened, in seconds since 1970, where that is not now; lines are in the order of their writing.
        """
        log.log(logging.WARNING if event in _GRAVE else logging.INFO, "%s %s", event, text)
        if self._file is None:
            return
        held = {"at": moment(time.time() if at is None else at), "event": str(event), "text": text, **facts}
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            if self._file.exists() and self._file.stat().st_size > _LONGEST:
                self._file.replace(former(self._file))
            line = json.dumps(held, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
            with self._file.open("ab", buffering=0) as lines:
                lines.write(_end_of_last(self._file) + line)

    def lines(self) -> Iterator[str]:
        """The lines that are written down, oldest first, and those that a full disk or a power cut has cut short."""
        return iter(()) if self._file is None else written(self._file)


def written(file: Path = EVENTS) -> Iterator[str]:
    """The lines of the file and of the one before it."""
    for each in (former(file), file):
        with contextlib.suppress(FileNotFoundError), each.open(encoding="utf-8", errors="replace") as lines:
            yield from (line.rstrip("\n") for line in lines if line != "\n")


def _end_of_last(file: Path) -> bytes:
    """What the last line lacks: an event that is glued to half a line would be lost with it."""
    with file.open("rb") as lines:
        if not lines.seek(0, os.SEEK_END):
            return b""
        lines.seek(-1, os.SEEK_END)
        return b"" if lines.read(1) == b"\n" else b"\n"


def former(file: Path) -> Path:
    """The file that this one becomes when it is full."""
    return file.with_suffix(".1.jsonl")


def moment(at: float) -> str:
    """The time as lines have it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
