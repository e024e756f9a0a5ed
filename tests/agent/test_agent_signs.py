"""Whether a keeper runs and turns, as the head says it; and the lock that says so."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from corral.agent.alone import alone, is_held
from corral.agent.signs import keeping, lock_of, silent, turned_of
from corral.model.head import Keeping

ON_EC2 = {"start": "systemctl restart corral-agent", "log": "journalctl -u corral-agent"}


def test_a_head_without_a_keeper_says_so(tmp_path: Path) -> None:
    assert keeping(tmp_path / "bell", tmp_path / "box") == Keeping(runs=False, turned=None, **ON_EC2)


def test_a_keeper_that_has_ended_leaves_when_it_last_turned(tmp_path: Path) -> None:
    with alone(lock_of(tmp_path / "bell")):
        turned_of(tmp_path / "bell").touch()
    os.utime(turned_of(tmp_path / "bell"), (1795300800, 1795300800))
    assert keeping(tmp_path / "bell", tmp_path / "box") == Keeping(runs=False, turned=1795300800, **ON_EC2)


def test_a_keeper_that_runs_is_seen_by_its_lock(tmp_path: Path) -> None:
    with alone(lock_of(tmp_path / "bell")):
        assert keeping(tmp_path / "bell", tmp_path / "box").runs


def test_a_machine_of_the_box_is_mended_without_systemd(tmp_path: Path) -> None:
    assert keeping(tmp_path / "bell", tmp_path).start == "/opt/corral/boot.sh"


def test_a_slurmctld_of_the_box_is_ended_where_it_hangs_and_started_where_it_was_stopped(tmp_path: Path) -> None:
    assert silent(tmp_path) == (
        "slurmctld on the head does not answer - on the head `pkill -9 slurmctld; /opt/corral/boot.sh` starts it,"
        " `tail /var/log/slurm/slurmctld.log` says why"
    )


def test_asking_leaves_the_lock_to_whom_it_belongs(tmp_path: Path) -> None:
    with alone(tmp_path / "lock"):
        is_held(tmp_path / "lock")
        with alone(tmp_path / "lock") as second:
            assert not second


def test_who_only_asks_does_not_keep_a_keeper_from_starting(tmp_path: Path) -> None:
    """The one that asks has the lock for an instant."""
    asked = threading.Event()

    def ask() -> None:
        with alone(tmp_path / "lock"):
            asked.set()
            time.sleep(0.02)

    asker = threading.Thread(target=ask)
    asker.start()
    asked.wait()
    with alone(tmp_path / "lock") as first:
        assert first
    asker.join()
