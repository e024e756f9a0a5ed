"""Jobs whose machine has rebooted are requeued, and no others."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from corral.agent.autoscaler.unexpected_reboots import RebootWatcher, RunningJob, interrupted_jobs
from corral.agent.cluster.models import SlurmNode
from corral.agent.events import EventLog

BOOTED = "2026-11-21T22:40:00"
NODE = SlurmNode(name="train-1", states=frozenset({"MIXED", "CLOUD"}), booted=BOOTED)
SCRIPTS = {
    "squeue": 'echo "squeue $*" >>"$HERE/calls"; cat "$HERE/jobs"',
    "scontrol": 'echo "scontrol $*" >>"$HERE/calls"; [ "$2" != 8 ]',
    "scancel": 'echo "scancel $*" >>"$HERE/calls"; [ "$1" != 9 ]',
}


def run(job: str, started: str, *nodes: str) -> RunningJob:
    return RunningJob(job_id=job, started=datetime.fromisoformat(started), nodes=nodes or ("train-1",))


@pytest.mark.parametrize(
    ("started", "booted", "found"),
    [
        ("2026-11-21T22:39:00", BOOTED, {"train-1": ["7"]}),
        ("2026-11-21T22:41:00", BOOTED, {}),
        ("2026-11-21T22:39:00", "None", {}),
        ("2026-11-21T22:39:00", "Unknown", {}),
    ],
)
def test_a_job_is_lost_where_its_machine_booted_after_it_began(
    started: str, booted: str, found: dict[str, list[str]]
) -> None:
    assert interrupted_jobs([run("7", started)], {"train-1": booted}) == found


def test_a_job_of_two_machines_that_booted_is_lost_once() -> None:
    jobs = [run("7", "2026-11-21T22:39:00", "train-0", "train-1", "train-2")]
    assert interrupted_jobs(jobs, {"train-1": BOOTED, "train-2": BOOTED}) == {"train-1": ["7"]}


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Slurm with two jobs of before the boot, the second of which is not requeued, one of after it, and one that waits
    for its machines.
    """
    for name, script in SCRIPTS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "jobs").write_text(
        "7 RUNNING 2026-11-21T22:39:00 train-1\n"
        "8 RUNNING 2026-11-21T22:39:00 train-1\n"
        "10 RUNNING 2026-11-21T22:41:00 train-1\n"
        "11 CONFIGURING 2026-11-21T22:39:00 train-[1-2]\n"
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HERE", str(tmp_path))
    return tmp_path


def calls(work_dir: Path) -> list[str]:
    file = work_dir / "calls"
    return file.read_text().splitlines() if file.exists() else []


def test_jobs_from_before_the_boot_are_requeued_or_cancelled(slurm: Path) -> None:
    RebootWatcher(journal=EventLog(None)).check([NODE])
    assert calls(slurm)[1:] == ["scontrol requeue 7", "scontrol requeue 8", "scancel 8"]


def test_it_is_one_event_a_machine(slurm: Path) -> None:
    RebootWatcher(journal=EventLog(slurm / "events")).check([NODE])
    (line,) = (slurm / "events").read_text().splitlines()
    held = json.loads(line)
    assert (held["event"], held["nodes"], held["jobs"]) == ("rebooted", "train-1", ["7", "8"])


def test_jobs_are_queried_only_after_a_boot(slurm: Path) -> None:
    reboots = RebootWatcher(journal=EventLog(None))
    reboots.check([NODE])
    before = len(calls(slurm))
    reboots.check([NODE, SlurmNode(name="train-2", states=frozenset({"IDLE", "CLOUD", "POWERED_DOWN"}), booted=BOOTED)])
    assert len(calls(slurm)) == before


def test_a_machine_that_boots_once_more_is_checked_again(slurm: Path) -> None:
    reboots = RebootWatcher(journal=EventLog(None))
    reboots.check([NODE])
    (slurm / "calls").unlink()
    reboots.check([replace(NODE, booted="2026-11-21T22:50:00")])
    assert calls(slurm)[1:] == ["scontrol requeue 7", "scontrol requeue 8", "scancel 8", "scontrol requeue 10"]
