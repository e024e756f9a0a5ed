"""Whether the file system of a state backend has room for the states that an update writes, step by step."""

from __future__ import annotations

import os
import re
from pathlib import Path

from corral.engine.errors import EngineError

NEEDED = 16 << 20  # bytes: a state is below 1 MiB, and an update keeps three copies, its events and its log
NEARLY_FULL = 1 << 20  # bytes: the next state may not fit


NAMED = re.compile(r"(/[^\s:'\"]+)['\"]?: (?:no space left on device|disk quota exceeded)", re.IGNORECASE)


def require_space(directory: Path) -> None:
    """Raises EngineError where an update would run out of space."""
    if free_space(directory) < NEEDED:
        raise EngineError(room(directory), ("free some space, then run the same command again",))


def room(directory: Path) -> str:
    """How much is free there, and how much is needed."""
    free = free_space(directory) >> 10
    return f"{directory}: {free:,} KiB are free on this disk, an update needs {NEEDED >> 20} MiB"


def where_full(text: str) -> str:
    """The same for the file that this complaint of a full disk names; only what is needed where it names none."""
    if named := NAMED.search(text):
        return room(next(place for place in Path(named[1]).parents if place.is_dir()))
    return f"an update needs {NEEDED >> 20} MiB where the state of the stack is kept"


def is_nearly_full(directory: Path) -> bool:
    """True if the next state may not fit."""
    return free_space(directory) < NEARLY_FULL


def free_space(directory: Path) -> int:
    """Bytes that the user may still write there."""
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize
