"""The emulated cloud of a daemon: the lock that every call holds, and when its state is saved.

A call that changes something is answered after the change is on disk while saving is fast; a large cloud is saved at
most a second after the change.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from moto.core.base_backend import BackendDict

from corral.box.state import saved_state
from corral.box.state.directory import StateDirectory

QUICK_S = 0.05  # slower saves move to the background
QUIET_S = 1.0  # maximum age of the saved state of a large cloud

log = logging.getLogger(__name__)


class CloudState:
    """The lock and the saving of everything that exists in the box; hold `lock` to read or change it."""

    def __init__(self, home: StateDirectory) -> None:
        self.lock = threading.RLock()
        self.problem: str | None = None
        self.watchers: list[Callable[[], None]] = []  # called at every change, under the lock; they must not block
        self._home = home
        self._save_s = 0.0
        self._unsaved = threading.Event()
        self._saver = threading.Thread(target=self._save_in_background, name="saver", daemon=True)

    def open(self) -> None:
        """Load the saved state. Raises UnreadableState."""
        saved_state.load(self._home)
        self._saver.start()

    def changed(self) -> None:
        """Save the state: before returning if that is fast, otherwise in the background."""
        for watcher in self.watchers:
            watcher()
        if self._save_s <= QUICK_S and self.problem is None:
            self.save()
        else:
            self._unsaved.set()

    def save(self) -> None:
        """Save the state; a failure is stored as `problem`, and the next change retries."""
        with self.lock:
            self._unsaved.clear()
            began = time.monotonic()
            try:
                saved_state.save(self._home)
            except Exception as error:
                self._set_problem(f"the cloud could not be saved: {getattr(error, 'strerror', None) or error}")
            else:
                self._set_problem(None)
            self._save_s = time.monotonic() - began

    def reset(self) -> None:
        """Delete everything in the cloud."""
        with self.lock:
            BackendDict.reset()
            self.save()
            for watcher in self.watchers:
                watcher()

    def _set_problem(self, problem: str | None) -> None:
        if problem and problem != self.problem:
            log.error("%s", problem, exc_info=True)
        elif self.problem and not problem:
            log.info("the cloud is saved again")
        self.problem = problem

    def _save_in_background(self) -> None:
        while self._unsaved.wait():
            time.sleep(QUIET_S)  # one save for all changes of a second
            self.save()
