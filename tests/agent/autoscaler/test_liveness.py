"""Whether an autoscaler runs and completes cycles, as its lock and heartbeat show."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from corral.agent import process_lock
from corral.agent.autoscaler.liveness import autoscaler_status, heartbeat_of, lock_of, slurmctld_problem
from corral.agent.process_lock import exclusive, is_held
from corral.model.head_report import AutoscalerStatus

ON_EC2 = {"start_command": "systemctl restart corral-agent", "log_command": "journalctl -u corral-agent"}


def test_a_head_without_an_autoscaler_is_reported(tmp_path: Path) -> None:
    assert autoscaler_status(tmp_path / "wake_socket", tmp_path / "box") == AutoscalerStatus(
        is_running=False, last_cycle=None, **ON_EC2
    )


def test_an_ended_autoscaler_leaves_the_time_of_its_last_cycle(tmp_path: Path) -> None:
    with exclusive(lock_of(tmp_path / "wake_socket")):
        heartbeat_of(tmp_path / "wake_socket").touch()
    os.utime(heartbeat_of(tmp_path / "wake_socket"), (1795300800, 1795300800))
    assert autoscaler_status(tmp_path / "wake_socket", tmp_path / "box") == AutoscalerStatus(
        is_running=False, last_cycle=1795300800, **ON_EC2
    )


def test_an_autoscaler_that_runs_is_seen_by_its_lock(tmp_path: Path) -> None:
    with exclusive(lock_of(tmp_path / "wake_socket")):
        assert autoscaler_status(tmp_path / "wake_socket", tmp_path / "box").is_running


def test_a_machine_of_the_box_is_restarted_without_systemd(tmp_path: Path) -> None:
    assert autoscaler_status(tmp_path / "wake_socket", tmp_path).start_command == "/opt/corral/boot.sh"


def test_a_slurmctld_of_the_box_is_killed_and_started_again(tmp_path: Path) -> None:
    assert slurmctld_problem(tmp_path) == (
        "slurmctld on the head does not answer - run `pkill -9 slurmctld; /opt/corral/boot.sh` on the head"
        " to restart it, `tail /var/log/slurm/slurmctld.log` to see why"
    )


def test_a_query_leaves_the_lock_to_its_holder(tmp_path: Path) -> None:
    with exclusive(tmp_path / "lock"):
        is_held(tmp_path / "lock")
        with exclusive(tmp_path / "lock") as second:
            assert not second


def test_a_query_does_not_keep_an_autoscaler_from_starting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query holds the lock for an instant: it has ended after the pause."""
    with contextlib.ExitStack() as query:
        assert query.enter_context(exclusive(tmp_path / "lock"))
        monkeypatch.setattr(process_lock.time, "sleep", lambda _: query.close())
        with exclusive(tmp_path / "lock") as first:
            assert first
