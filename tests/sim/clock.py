"""Simulated time, which jumps from one scheduled event to the next."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count


class Clock:
    """Seconds since 1970; `after` schedules an event."""

    START = 1_790_000_000.0

    def __init__(self) -> None:
        self.now = self.START
        self._scheduled: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()

    def __call__(self) -> float:
        return self.now

    @property
    def age(self) -> float:
        """Seconds since the start."""
        return self.now - self.START

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._scheduled, (self.now + seconds, next(self._number), act))

    def run(self, until_age: float) -> None:
        """Run all events until then."""
        while self._scheduled and self._scheduled[0][0] <= self.START + until_age:
            at, _, act = heapq.heappop(self._scheduled)
            self.now = max(self.now, at)
            act()
        self.now = self.START + until_age
