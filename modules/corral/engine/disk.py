"""Whether the file system of a state backend has room for the states that an update writes, step by step."""

from __future__ import annotations

import os
from pathlib import Path

from corral.engine.errors import EngineError

NEEDED = 16 << 20  # bytes: a state is below 1 MiB, and an update keeps three copies, its events and its log
NEARLY_FULL = 1 << 20  # bytes: the next state may not fit


def require_space(directory: Path) -> None:
    """Raises EngineError where an update would run out of space."""
    if (free := free_space(directory)) < NEEDED:
        raise EngineError(
            f"{directory}: {free >> 10} KiB are free on this disk, an update needs {NEEDED >> 20} MiB",
            ("free some space, then run the same command again",),
        )


def is_nearly_full(directory: Path) -> bool:
    """True if the next state may not fit."""
    return free_space(directory) < NEARLY_FULL


def free_space(directory: Path) -> int:
    """Bytes that the user may still write there."""
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize
