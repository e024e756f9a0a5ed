"""Keeps the answers about a cluster fresh while somebody looks: each source in a thread, at its own pace."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from corral.cli.support.exit_codes import sentence_of
from corral.report.dashboard.cluster_document import Answer, ClusterView
from corral.report.timeline.event_lines import ClusterEvent

# A page that is open asks more often, a hidden one once a minute: browsers slow down the timers of hidden tabs.
UNREAD_S = 90.0
_TICK_S = 0.2
_KEPT_EVENTS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What answers with some fields of the view. `answer`: the field with its `Answer`.

    `query`: the new values; any exception is a source that does not answer.
    """

    answer: str
    every_s: float
    query: Callable[[ClusterView], Mapping[str, Any]]


class ClusterWatch:
    """Queries the sources while the view is read."""

    def __init__(self, view: ClusterView, sources: Sequence[Source], unread_s: float = UNREAD_S) -> None:
        unanswered: dict[str, Any] = {one.answer: Answer(every_s=one.every_s) for one in sources}
        self._view = replace(view, **unanswered)
        self._sources = sources
        self._unread_s = unread_s
        self._read_at: float | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Starts the threads, which end with the process."""
        for source in self._sources:
            threading.Thread(target=self._follow, args=(source,), daemon=True).start()

    def read(self) -> ClusterView:
        """The newest answers."""
        self._read_at = time.monotonic()
        return self._view

    def peek(self) -> ClusterView:
        """The newest answers, for the queries themselves."""
        return self._view

    def query(self, source: Source) -> None:
        """Queries the source once. An answer that fails keeps the values of the last one."""
        held: Answer = getattr(self._view, source.answer)
        found: dict[str, Any] = {}
        try:
            found.update(source.query(self._view))
            answer = replace(held, at=datetime.now(UTC), problem="")
        except Exception as error:  # whatever it is, the page shows it, and the next query may succeed
            answer = replace(held, problem=sentence_of(error) or f"{type(error).__name__}: {error}")
        with self._lock:
            self._view = replace(self._view, **{**found, source.answer: answer})

    def _follow(self, source: Source) -> None:
        due = 0.0
        while True:
            now = time.monotonic()
            if self._read_at is not None and now - self._read_at < self._unread_s and now >= due:
                self.query(source)
                due = time.monotonic() + source.every_s
            time.sleep(_TICK_S)


def joined_events(held: Sequence[ClusterEvent], newest: Sequence[ClusterEvent]) -> tuple[ClusterEvent, ...]:
    """The events, `newest` being all since the last second of those that are held."""
    last = held[-1].at if held else None
    return (*(one for one in held if one.at != last), *newest)[-_KEPT_EVENTS:]
