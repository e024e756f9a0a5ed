"""How full the head's file systems are. A lost server lets a query hang, so a background task of its own reads them."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from corral.model.cluster import ClusterPlan

EVERY_S = 60.0
# After this a reading is left out: a value that stands still would be shown as the present one.
VALID_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """A mounted file system in bytes. `free`: for users, without root's reserve."""

    mount: str
    size: int
    free: int


@dataclass(kw_only=True)
class FileSystemWatch:
    """The last reading of the file systems. `clock`: seconds that never run backwards."""

    mounts: Callable[[], Sequence[str]]
    clock: Callable[[], float]
    size_of: Callable[[str], tuple[int, int]]
    _found: tuple[FileSystem, ...] = ()
    _read_at: float = 0.0

    def __call__(self) -> None:
        """Read them. One that is not mounted or fails is left out."""
        found = []
        for mount in self.mounts():
            try:
                size, free = self.size_of(mount)
            except OSError:
                continue
            found.append(FileSystem(mount=mount, size=size, free=free))
        self._found, self._read_at = tuple(found), self.clock()

    def latest(self) -> tuple[FileSystem, ...]:
        """The last reading; nothing if it is too old."""
        return self._found if self.clock() - self._read_at <= VALID_S else ()


def mounts_of(plan: ClusterPlan) -> tuple[str, ...]:
    """The mount points of the head's file systems."""
    home = ("/home",) if plan.home else ()
    return ("/", "/var/lib/corral", *home, *(system.mount for system in plan.lustre))


def size_and_free(mount: str) -> tuple[int, int]:
    """The size of the file system that is mounted here, and what is free, in bytes. Raises OSError if none is.

    os.path.ismount misses a bind mount within one file system, as the box has.
    """
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    if mount not in {line.split()[4] for line in mounts}:
        raise FileNotFoundError(f"nothing is mounted at {mount}")
    found = os.statvfs(mount)
    return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
