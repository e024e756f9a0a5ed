"""What happens to a cluster, as lines of JSON on the head's state volume, and as words in the log.

Every decision of the keeper is one event, however many nodes it concerns. docs/events.md lists the kinds.
"""

import contextlib
import json
import logging
import time
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
    BEGAN = "keeper-began"
    UP = "up"
    NOTICE = "notice"
    DRAINED = "drained"
    DRAINING = "draining"


_GRAVE = frozenset(
    {Event.REFUSED, Event.WITHOUT, Event.TERMINATED, Event.FORGOTTEN, Event.STOPPED, Event.NOTICE, Event.DRAINED}
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
        held = {"at": _moment(time.time() if at is None else at), "event": str(event), "text": text, **facts}
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            if self._file.exists() and self._file.stat().st_size > _LONGEST:
                self._file.replace(self._file.with_suffix(".1.jsonl"))
            with self._file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(held, ensure_ascii=False) + "\n")


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
