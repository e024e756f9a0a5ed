"""When the scripts of preempted jobs are ended, so that Slurm requeues their jobs."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from corral.agent.autoscaler.grace_end import PreemptedJob, end_graces, preempted_jobs, to_signal
from corral.model.accounts import QosPlan

NOW = datetime(2026, 11, 21, 12)
QOS = (QosPlan(name="day", preempts=("night",)), QosPlan(name="night", grace_s=120))
# Of JobID, BatchFlag, PreemptTime, EndTime, QOS.
NOT_PREEMPTED = "4 1 N/A 2026-11-21T18:00:00 night\n"
PREEMPTED = "5 1 2026-11-21T11:59:00 2026-11-21T12:00:08 night\n"
WITHOUT_LIMIT = "6 1 2026-11-21T11:59:00 NONE night\n"
OF_ANOTHER_QOS = "7 1 2026-11-21T11:59:00 NONE ours\n"
INTERACTIVE = "8 0 2026-11-21T11:59:00 2026-11-21T12:00:08 night\n"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake Slurm. `running`: what squeue prints. `calls`: what scancel got."""
    for name, script in {"squeue": 'cat "$HERE/running"', "scancel": 'echo "$*" >>"$HERE/calls"'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "calls").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HERE", str(tmp_path))
    return tmp_path


def signals(left_s: int, terminated: frozenset[str] = frozenset()) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return to_signal([PreemptedJob(job_id="5", ends=NOW + timedelta(seconds=left_s))], terminated, NOW)


@pytest.mark.parametrize(
    ("left_s", "expected"),
    [(11, ((), ())), (10, (("5",), ())), (6, (("5",), ())), (5, ((), ("5",))), (-30, ((), ("5",)))],
)
def test_a_script_gets_sigterm_and_then_sigkill_before_its_grace_time_is_over(
    left_s: int, expected: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    assert signals(left_s) == expected


def test_a_script_gets_sigterm_once() -> None:
    assert signals(8, frozenset({"5"})) == ((), ())


def test_only_batch_jobs_in_their_grace_time_are_ended(slurm: Path) -> None:
    (slurm / "running").write_text(NOT_PREEMPTED + PREEMPTED + INTERACTIVE)
    assert [job.job_id for job in preempted_jobs({"night": timedelta(seconds=120)})] == ["5"]


def test_the_grace_time_of_a_job_without_a_time_limit_is_that_of_its_qos(slurm: Path) -> None:
    (slurm / "running").write_text(WITHOUT_LIMIT + OF_ANOTHER_QOS)
    found = preempted_jobs({"night": timedelta(seconds=120)})
    assert found == (PreemptedJob(job_id="6", ends=datetime(2026, 11, 21, 12, 1)),)


def test_the_scripts_are_signalled_and_not_their_jobs(slurm: Path) -> None:
    (slurm / "running").write_text(PREEMPTED)
    seen = end_graces(QOS, frozenset(), NOW)
    again = end_graces(QOS, seen or frozenset(), NOW + timedelta(seconds=3))
    assert (slurm / "calls").read_text() == "--batch --signal=TERM 5\n--batch --signal=KILL 5\n"
    assert (seen, again) == ({"5"}, {"5"})


def test_a_job_that_is_preempted_again_gets_sigterm_again(slurm: Path) -> None:
    (slurm / "running").write_text(PREEMPTED.replace("5 ", "7 ", 1))
    seen = end_graces(QOS, frozenset({"5"}), NOW)
    (slurm / "running").write_text(PREEMPTED)
    end_graces(QOS, seen or frozenset(), NOW)
    assert (slurm / "calls").read_text() == "--batch --signal=TERM 7\n--batch --signal=TERM 5\n"


def test_a_job_that_has_ended_meanwhile_stops_nothing(slurm: Path) -> None:
    (slurm / "running").write_text(PREEMPTED)
    (slurm / "scancel").write_text("#!/bin/sh\nexit 1\n")
    assert end_graces(QOS, frozenset(), NOW) == {"5"}


def test_without_a_preempted_job_the_loop_need_not_hurry(slurm: Path) -> None:
    (slurm / "running").write_text(NOT_PREEMPTED)
    assert end_graces(QOS, frozenset({"5"}), NOW) is None
