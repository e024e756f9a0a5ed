"""The lock of a state directory: a POSIX record lock that the daemon holds and every process may query.

A query does not take the lock, so that a status never blocks a start.
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

_FLOCK = "hhqqi"  # struct flock of fcntl(2) on 64-bit Linux: type, whence, start, length, pid


def acquire(path: Path) -> int:
    """The file descriptor that holds the lock until it is closed.

    Raises BlockingIOError or PermissionError if another process holds it.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


def holder_pid(path: Path) -> int | None:
    """The pid of the process that holds the lock; None if there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        query = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(handle, fcntl.F_GETLK, query))
        return None if kind == fcntl.F_UNLCK else int(pid)
    finally:
        os.close(handle)
