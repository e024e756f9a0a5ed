"""What happened, counted from the lines of the event log, which a new head continues. `EventFollower` reads it.

A restarted agent counts the file anew, so counters go on; what a rotation has removed is missing then, and Prometheus
takes a smaller counter for a restart.
"""

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corral.agent.events import EVENTS, Event, rotated
from corral.model.node_names import expand, queue_of

_LONGEST_BOOT_S = 86400  # a machine with a wrong clock
_COUNTED = tuple(
    f'"event": "{event}"' for event in (Event.LAUNCHED, Event.REFUSED, Event.LAUNCH_FAILED, Event.UP, Event.NOTICE)
)


@dataclass(slots=True, kw_only=True)
class EventCounts:
    """The counts. `launches`: by queue, offer and outcome; the others by queue. `boots`: seconds of each boot."""

    launches: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    notices: Counter[str] = field(default_factory=Counter)
    boots: dict[str, list[float]] = field(default_factory=dict)

    def add(self, line: str) -> None:
        """Count a line of the event log. One that is truncated, or of another version, counts as nothing."""
        if not any(kind in line for kind in _COUNTED):  # most lines: parsing them takes ten times longer
            return
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            self._add(json.loads(line))

    def _add(self, event: Mapping[str, Any]) -> None:
        kind, nodes = event["event"], expand(event["nodes"])
        queue = queue_of(nodes[0]) if nodes else ""
        if kind == Event.LAUNCHED:
            self.launches[queue, event["offer"], "launched"] += 1
        elif kind == Event.REFUSED:
            self.launches[queue, event["offer"], "refused"] += 1
        elif kind == Event.LAUNCH_FAILED:
            self.launches[queue, "", "failed"] += 1
        elif kind == Event.NOTICE:
            self.notices.update(queue_of(node) for node in nodes)
        elif kind == Event.UP and 0 <= event.get("boot_s", -1) <= _LONGEST_BOOT_S:
            self.boots.setdefault(queue, []).append(float(event["boot_s"]))


@dataclass(kw_only=True)
class EventFollower:
    """Counts the event log, and at each later call only its new lines."""

    file: Path = EVENTS
    counts: EventCounts = field(default_factory=EventCounts)
    _read_to: int | None = None
    _inode: int = 0

    def follow(self) -> EventCounts:
        """The counts until now."""
        with suppress(FileNotFoundError):
            if self._read_to is None:
                self._read(rotated(self.file), 0)
                self._read_to = 0
            elif self.file.stat().st_ino != self._inode:
                self._read(rotated(self.file), self._read_to)  # it has just become the predecessor
                self._read_to = 0
            self._inode = self.file.stat().st_ino
            self._read_to = self._read(self.file, self._read_to)
        return self.counts

    def _read(self, file: Path, start: int) -> int:
        """Count the whole lines from here on; return where the last one ends."""
        if not file.exists():
            return start
        with file.open("rb") as lines:
            lines.seek(start)
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                start += len(line)
                self.counts.add(line.decode(errors="replace"))
        return start
