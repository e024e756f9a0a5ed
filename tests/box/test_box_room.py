"""Room on the disk for machines: what an up needs, and who is told when it is gone."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from corral.box.directory import StateDirectory
from corral.box.process import BoxError
from corral.box.room import Watch, require_room_for_machines, shortage

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
        require_room_for_machines(home)
    return str(raised.value)


def test_the_first_head_needs_room_for_all_that_it_writes(tmp_path: Path, free: SimpleNamespace) -> None:
    free.mib = 255
    assert refusal(StateDirectory(tmp_path)) == (
        f"nothing was started: 261,120 KiB are free on the disk of {tmp_path}, the box's machines need 256 MiB"
        " - free some, or choose another directory with --box-dir"
    )


def test_where_a_head_has_been_less_is_needed(tmp_path: Path, free: SimpleNamespace) -> None:
    (tmp_path / "machines/volumes/vol-1").mkdir(parents=True)
    free.mib = 31
    assert "the box's machines need 32 MiB" in refusal(StateDirectory(tmp_path))


def test_a_disk_with_room_is_no_trouble(tmp_path: Path, free: SimpleNamespace) -> None:
    free.mib = 32
    assert shortage(StateDirectory(tmp_path)) is None


def test_the_log_has_a_line_when_room_goes_and_when_it_comes_back(
    tmp_path: Path, free: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    watch = Watch(StateDirectory(tmp_path))
    caplog.set_level(logging.INFO)
    for free.mib in (1000, 31, 30, 1000, 1000):
        watch.look()
    assert [one.getMessage() for one in caplog.records] == [
        f"31,744 KiB are free on the disk of {tmp_path}, its machines need 32 MiB - free some: a machine that cannot"
        " write does not boot, and does not say so",
        "the machines have room again",
    ]
