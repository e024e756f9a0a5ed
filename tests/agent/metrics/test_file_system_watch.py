"""How full file systems are, read in the background."""

from __future__ import annotations

import os

import pytest

from corral.agent.metrics.file_systems import FileSystem, FileSystemWatch, mounts_of, size_and_free
from render.plans import dev


def watch(*mounts: str, clock: list[float]) -> FileSystemWatch:
    def size_of(mount: str) -> tuple[int, int]:
        if mount == "/gone":
            raise FileNotFoundError(mount)
        return 100, 40

    return FileSystemWatch(mounts=lambda: mounts, clock=lambda: clock[0], size_of=size_of)


def test_a_file_system_that_is_gone_is_left_out() -> None:
    made = watch("/home", "/gone", clock=[0.0])
    made()
    assert made.latest() == (FileSystem(mount="/home", size=100, free=40),)


def test_a_reading_that_is_too_old_is_none_because_a_hanging_server_would_seem_well() -> None:
    clock = [0.0]
    made = watch("/home", clock=clock)
    made()
    clock[0] = 301.0
    assert made.latest() == ()


def test_the_root_of_this_machine_has_its_size() -> None:
    held = os.statvfs("/")
    assert size_and_free("/")[0] == held.f_blocks * held.f_frsize


def test_a_directory_that_is_no_mount_has_no_size_of_its_own() -> None:
    with pytest.raises(FileNotFoundError):
        size_and_free("/usr/share/doc")


def test_the_heads_file_systems_are_its_volumes_the_homes_and_lustre() -> None:
    assert mounts_of(dev()) == ("/", "/var/lib/corral", "/home", "/scratch")
