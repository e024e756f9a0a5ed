"""A lock that one process holds. The kernel releases it when the process ends, even after a kill."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

_PROBE_S = 0.1  # `is_held` holds the lock for an instant


@contextlib.contextmanager
def exclusive(lock: Path) -> Iterator[bool]:
    """Yield True if this process got the lock; it is held until the block or the process ends."""
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not (acquired := _lock(handle)):
            time.sleep(_PROBE_S)
            acquired = _lock(handle)
        yield acquired
    finally:
        os.close(handle)


def is_held(lock: Path) -> bool:
    """Whether a process holds the lock now."""
    try:
        handle = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _lock(handle, fcntl.LOCK_SH)
    finally:
        os.close(handle)


def _lock(handle: int, how: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
