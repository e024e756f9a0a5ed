"""Whether the disk of a box has space for its machines. `daemon_process` checks the space for the box's own state."""

from __future__ import annotations

import contextlib
import logging

from corral.box.daemon.daemon_process import BoxError, free_bytes
from corral.box.state.directory import StateDirectory

NEW_HEAD_BYTES = 256 << 20  # a head and its accounting take 180 MiB, each node 15 MiB, the engine's states 20 MiB
EXISTING_HEAD_BYTES = 32 << 20  # two nodes, or what a head writes in some hours

log = logging.getLogger(__name__)


def require_disk_space_for_machines(home: StateDirectory) -> None:
    """Raises BoxError if a deployment's machines would fill the disk: they would not boot and print no message."""
    needed = EXISTING_HEAD_BYTES if _has_volumes(home) else NEW_HEAD_BYTES
    if free_bytes(home) < needed:
        raise BoxError(
            f"nothing was started: {_free(home)}, the box's machines need {needed >> 20} MiB - free some, or choose"
            " another directory with --box-dir"
        )


def disk_space_problem(home: StateDirectory) -> str | None:
    """A sentence if the disk is so full that machines soon cannot write; otherwise None."""
    if free_bytes(home) >= EXISTING_HEAD_BYTES:
        return None
    return (
        f"{_free(home)}, its machines need {EXISTING_HEAD_BYTES >> 20} MiB - free some: a machine that cannot write"
        " does not boot and prints no message"
    )


class DiskSpaceMonitor:
    """Logs when disk space becomes short, and when it is sufficient again."""

    def __init__(self, home: StateDirectory) -> None:
        self._home = home
        self._is_short = False

    def check(self) -> None:
        """Log the disk's state if it has changed since the last check."""
        with contextlib.suppress(OSError):  # the directory was removed
            problem = disk_space_problem(self._home)
            if problem and not self._is_short:
                log.error("%s", problem)
            elif self._is_short and not problem:
                log.info("the machines have enough disk space again")
            self._is_short = bool(problem)


def _has_volumes(home: StateDirectory) -> bool:
    try:
        return any((home.machines / "volumes").iterdir())
    except OSError:
        return False


def _free(home: StateDirectory) -> str:
    return f"the disk of {home.path} has {free_bytes(home) >> 10:,} KiB free"
