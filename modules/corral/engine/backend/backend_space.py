"""Checks that the file system of a state backend has space for what an update writes."""

from __future__ import annotations

import os
import re
from pathlib import Path

from corral.engine.engine_errors import EngineError

NEEDED_BYTES = 16 << 20  # bytes: a state is below 1 MiB, and an update keeps three copies, its events and its log
NEARLY_FULL_BYTES = 1 << 20  # bytes: the next state may not fit


PATH_OF_FULL_DISK = re.compile(r"(/[^\s:'\"]+)['\"]?: (?:no space left on device|disk quota exceeded)", re.IGNORECASE)


def require_space(directory: Path) -> None:
    """Raises EngineError if an update would run out of space."""
    if free_space(directory) < NEEDED_BYTES:
        raise EngineError(free_space_text(directory), ("free some space, then run the same command again",))


def free_space_text(directory: Path) -> str:
    """The free space and the space that an update needs, as a sentence."""
    free = free_space(directory) >> 10
    return f"{directory}: {free:,} KiB free on this disk, but an update needs {NEEDED_BYTES >> 20} MiB"


def full_disk_text(text: str) -> str:
    """The same for the file that an error of a full disk names; without a file, only the needed space."""
    if named := PATH_OF_FULL_DISK.search(text):
        return free_space_text(next(directory for directory in Path(named[1]).parents if directory.is_dir()))
    return f"an update needs {NEEDED_BYTES >> 20} MiB on the disk of the state backend"


def is_nearly_full(directory: Path) -> bool:
    """True if the next state may not fit."""
    return free_space(directory) < NEARLY_FULL_BYTES


def free_space(directory: Path) -> int:
    """Bytes that the user may still write there."""
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize
