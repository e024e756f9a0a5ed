"""One process at a time: a lock that goes with the process that holds it, however that ends."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

_LOOKED_AT_S = 0.1  # who only asks whether a lock is held has it for an instant


@contextlib.contextmanager
def alone(lock: Path) -> Iterator[bool]:
    """True for one process at a time; the lock goes with the process."""
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not (first := _taken(handle)):
            time.sleep(_LOOKED_AT_S)
            first = _taken(handle)
        yield first
    finally:
        os.close(handle)


def is_held(lock: Path) -> bool:
    """Whether a process has it now."""
    try:
        handle = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _taken(handle, fcntl.LOCK_SH)
    finally:
        os.close(handle)


def _taken(handle: int, how: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
