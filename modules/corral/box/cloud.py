"""The one cloud of a daemon: the lock that every call holds, and when its state is written to disk.

A call that changes something is answered after the change is on disk, as long as writing is quick; a cloud that has
grown too large for that is written at most a second after the change.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from moto.core.base_backend import BackendDict

from corral.box import state
from corral.box.directory import StateDirectory

QUICK_S = 0.05  # a save that takes longer would slow every change down: it moves to the background
QUIET_S = 1.0  # how old the saved state of a large cloud may be

log = logging.getLogger(__name__)


class Cloud:
    """Everything that exists in the box; hold `lock` while looking at it or changing it."""

    def __init__(self, home: StateDirectory) -> None:
        self.lock = threading.RLock()
        self.problem: str | None = None
        self.watchers: list[Callable[[], None]] = []  # told of every change, under the lock; they act elsewhere
        self._home = home
        self._save_s = 0.0
        self._unsaved = threading.Event()
        self._saver = threading.Thread(target=self._save_in_background, name="saver", daemon=True)

    def open(self) -> None:
        """Continues from the saved state. Raises state.OtherVersion if it cannot be read."""
        state.load(self._home)
        self._saver.start()

    def changed(self) -> None:
        """Sees to it that the state is saved: before it returns if that is quick."""
        for watcher in self.watchers:
            watcher()
        if self._save_s <= QUICK_S and self.problem is None:
            self.save()
        else:
            self._unsaved.set()

    def save(self) -> None:
        """Writes the state; a failure is kept as `problem` and tried again with the next change."""
        with self.lock:
            self._unsaved.clear()
            began = time.monotonic()
            try:
                state.save(self._home)
            except Exception as error:
                self._note(f"the cloud could not be saved: {getattr(error, 'strerror', None) or error}")
            else:
                self._note(None)
            self._save_s = time.monotonic() - began

    def reset(self) -> None:
        """Empties the cloud."""
        with self.lock:
            BackendDict.reset()
            self.save()
            for watcher in self.watchers:
                watcher()

    def _note(self, problem: str | None) -> None:
        if problem and problem != self.problem:
            log.error("%s", problem, exc_info=True)
        elif self.problem and not problem:
            log.info("the cloud is saved again")
        self.problem = problem

    def _save_in_background(self) -> None:
        while self._unsaved.wait():
            time.sleep(QUIET_S)  # gathers the changes of a second into one save
            self.save()
