"""Disk space for machines: the requirement of a deployment, and the log's reports."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from corral.box.daemon.daemon_process import BoxError
from corral.box.daemon.disk_space import DiskSpaceMonitor, disk_space_problem, require_disk_space_for_machines
from corral.box.state.directory import StateDirectory

MIB = 1 << 20


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the disk has free, in MiB; a test may change it."""
    disk = SimpleNamespace(mib=1000)

    def found(_: Path) -> SimpleNamespace:
        return SimpleNamespace(f_bavail=disk.mib, f_frsize=MIB)

    monkeypatch.setattr(os, "statvfs", found)
    return disk


def refusal(home: StateDirectory) -> str:
    with pytest.raises(BoxError) as raised:
        require_disk_space_for_machines(home)
    return str(raised.value)


def test_the_first_head_needs_256_mib(tmp_path: Path, free: SimpleNamespace) -> None:
    free.mib = 255
    assert refusal(StateDirectory(tmp_path)) == (
        f"nothing was started: the disk of {tmp_path} has 261,120 KiB free, the box's machines need 256 MiB"
        " - free some, or choose another directory with --box-dir"
    )


def test_a_later_head_needs_32_mib(tmp_path: Path, free: SimpleNamespace) -> None:
    (tmp_path / "machines/volumes/vol-1").mkdir(parents=True)
    free.mib = 31
    assert "the box's machines need 32 MiB" in refusal(StateDirectory(tmp_path))


def test_a_disk_with_enough_space_has_no_problem(tmp_path: Path, free: SimpleNamespace) -> None:
    free.mib = 32
    assert disk_space_problem(StateDirectory(tmp_path)) is None


def test_the_log_reports_a_shortage_and_its_end(
    tmp_path: Path, free: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    monitor = DiskSpaceMonitor(StateDirectory(tmp_path))
    caplog.set_level(logging.INFO)
    for free.mib in (1000, 31, 30, 1000, 1000):
        monitor.check()
    assert [one.getMessage() for one in caplog.records] == [
        f"the disk of {tmp_path} has 31,744 KiB free, its machines need 32 MiB - free some: a machine that cannot"
        " write does not boot and prints no message",
        "the machines have enough disk space again",
    ]
