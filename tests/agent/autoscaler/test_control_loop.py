"""The autoscaler's loop: its steps, and how often they run. An error is logged once, and the other steps continue."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from corral.agent.autoscaler.control_loop import ControlLoop
from corral.agent.cluster.models import SlurmNode
from corral.agent.cluster.state import AutoscalerState
from corral.agent.errors import AgentError
from corral.agent.events import EventLog
from corral.model.accounts import QosPlan


class Failing:
    """An autoscaler that answers, and cannot compare."""

    is_closing, nodes, state = True, (), AutoscalerState()

    def __init__(self, error: Exception) -> None:
        self.error, self.answered = error, 0

    def process_requests(self, requests: Sequence[object], done: object) -> frozenset[str]:
        self.answered += 1
        return frozenset()

    def reconcile(self, requested: object, requests: object) -> None:
        raise self.error


def after_three(tmp_path: Path, error: Exception) -> tuple[Failing, ControlLoop]:
    autoscaler: Any = Failing(error)
    sign = tmp_path / "turned"
    rounds = ControlLoop(autoscaler=autoscaler, journal=EventLog(None), spool=tmp_path, interval_s=0.0, heartbeat=sign)
    for _ in range(3):
        rounds.run_once()
    return autoscaler, rounds


@pytest.mark.parametrize("error", [AgentError("EC2 is away"), OSError(28, "No space left"), RuntimeError("what?")])
def test_a_step_that_fails_does_not_block_the_others(tmp_path: Path, error: Exception) -> None:
    autoscaler, _ = after_three(tmp_path, error)
    assert (autoscaler.answered, (tmp_path / "turned").exists()) == (3, True)


@pytest.mark.parametrize("error", [AgentError("EC2 is away"), OSError(28, "No space left"), RuntimeError("what?")])
def test_the_same_error_is_logged_once(tmp_path: Path, error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        after_three(tmp_path, error)
    assert len(caplog.messages) == 1


def test_another_error_is_logged_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    autoscaler, rounds = after_three(tmp_path, AgentError("EC2 is away"))
    autoscaler.error = AgentError("Slurm is away")
    with caplog.at_level(logging.ERROR):
        rounds.run_once()
    assert caplog.messages[-1] == "compare Slurm and EC2: Slurm is away"


INTERVAL_S = 30.0
# What slurmctld says: a job of before its machine's boot, one that was requeued and waits for Slurm's delay alone.
SQUEUE = """#!/bin/sh
echo "squeue $*" >>"$HERE/calls"
[ -e "$HERE/away" ] && exit 1
case "$*" in
*--nodelist=*) echo "7 RUNNING 2026-11-21T22:39:00 train-1" ;;
*--states=PENDING*) cat "$HERE/waiting" ;;
*--states=RUNNING*) cat "$HERE/running" ;;
esac
"""
SCONTROL = """#!/bin/sh
echo "scontrol $*" >>"$HERE/calls"
"""
NODE = SlurmNode(
    name="train-1",
    states=frozenset({"MIXED", "CLOUD"}),
    address="10.0.0.1",
    started="2026-11-21T22:40:09",
    booted="2026-11-21T22:40:00",
)


class Over(Exception):
    """The loop has run for long enough."""


@dataclass
class Sound:
    """An autoscaler that writes down when it answers and compares, and has the same nodes after each comparison."""

    clock: Clock
    fails: Collection[int] = ()  # the first time of answering is 1
    nodes: tuple[SlurmNode, ...] = ()
    is_closing: bool = False
    answered: list[float] = field(default_factory=list)
    compared: list[float] = field(default_factory=list)
    state: AutoscalerState = AutoscalerState()  # noqa: RUF009  frozen
    plan: Any = field(default_factory=lambda: SimpleNamespace(queues=(), requeues_ended_in_grace=False))

    def process_requests(self, requests: Sequence[object], done: object) -> frozenset[str]:
        self.answered.append(self.clock())
        return frozenset({"train-9"} if len(self.answered) in self.fails else ())

    def reconcile(self, requested: object, requests: object) -> None:
        self.compared.append(self.clock())


@dataclass
class Clock:
    """Time that passes only while somebody listens on the line, whose wake_socket never rings."""

    until: float = 0.0
    now: float = 0.0
    rest_s: float = 0.0

    def __call__(self) -> float:
        return self.now

    def settimeout(self, rest_s: float) -> None:
        self.rest_s = rest_s

    def recv(self, size: int) -> bytes:
        self.now += self.rest_s
        if self.now > self.until:
            raise Over
        raise TimeoutError


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake Slurm. `calls`: the commands that ran. `waiting`, `running`: the pending and the running jobs."""
    for name, script in {"squeue": SQUEUE, "scontrol": SCONTROL}.items():
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    for name in ("waiting", "running"):
        (tmp_path / name).touch()
    (tmp_path / "calls").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HERE", str(tmp_path))
    return tmp_path


def count_calls(slurm: Path, words: str) -> int:
    """How often Slurm got this call."""
    return sum(words in line for line in (slurm / "calls").read_text().splitlines())


def rounds_of(autoscaler: Sound, work_dir: Path) -> ControlLoop:
    held: Any = autoscaler
    spool = work_dir / "spool"
    spool.mkdir()
    sign = work_dir / "turned"
    return ControlLoop(
        autoscaler=held,
        journal=EventLog(None),
        spool=spool,
        interval_s=INTERVAL_S,
        heartbeat=sign,
        clock=autoscaler.clock,
    )


def test_a_newly_delayed_job_causes_one_reconciliation(slurm: Path) -> None:
    autoscaler = Sound(Clock())
    rounds = rounds_of(autoscaler, slurm)
    rounds.run_once()
    (slurm / "waiting").write_text(f"5 1 {datetime.now():%Y-%m-%dT%H:%M:%S} train BeginTime\n")
    compared = [rounds.run_once() or len(autoscaler.compared) for _ in range(3)]
    assert compared == [1, 2, 2]


def test_slurmctld_saves_what_a_reconciliation_has_seen(slurm: Path) -> None:
    rounds_of(Sound(Clock(), nodes=(NODE,)), slurm).run_once()
    assert count_calls(slurm, "scontrol update nodename=train-1 nodeaddr=10.0.0.1") == 1


def test_jobs_whose_machine_has_rebooted_are_requeued(slurm: Path) -> None:
    rounds_of(Sound(Clock(), nodes=(NODE,)), slurm).run_once()
    assert count_calls(slurm, "scontrol requeue 7") == 1


def test_a_check_gets_the_nodes_of_a_reconciliation_once(slurm: Path) -> None:
    rounds = rounds_of(Sound(Clock(), nodes=(NODE,)), slurm)
    rounds.run_once()
    rounds.run_once()
    assert count_calls(slurm, "squeue --noheader --all --states=configuring") == 1


def test_a_failed_check_gets_the_nodes_of_a_reconciliation_again(slurm: Path) -> None:
    rounds = rounds_of(Sound(Clock(), nodes=(NODE,)), slurm)
    (slurm / "away").touch()
    rounds.run_once()
    (slurm / "away").unlink()
    rounds.run_once()
    assert count_calls(slurm, "scontrol requeue 7") == 1


@pytest.mark.parametrize(
    ("fails", "answered"),
    [(range(1, 9), [0, 2, 6, 14, 30, 60, 90]), ((1, 2, 4), [0, 2, 6, 36, 38, 68, 98])],
    ids=["for long", "twice and once more"],
)
def test_a_failed_request_is_tried_again_soon_and_then_less_often(
    slurm: Path, fails: Collection[int], answered: list[float]
) -> None:
    line: Any = Clock(until=100)
    autoscaler = Sound(line, fails=fails)
    with pytest.raises(Over):
        rounds_of(autoscaler, slurm).run(line)
    assert autoscaler.answered == answered


@pytest.mark.parametrize(("ends_in_grace", "calls"), [(True, 1), (False, 0)])
def test_preempted_jobs_are_looked_for_where_slurm_requeues_what_ends_in_its_grace_time(
    slurm: Path, ends_in_grace: bool, calls: int
) -> None:
    plan = SimpleNamespace(
        queues=(), requeues_ended_in_grace=ends_in_grace, accounts=SimpleNamespace(qos=(QosPlan(name="day"),))
    )
    rounds_of(Sound(Clock(), plan=plan), slurm).run_once()
    assert count_calls(slurm, "squeue --noheader --states=RUNNING") == calls


def test_while_a_job_is_in_its_grace_time_the_loop_looks_each_second(slurm: Path) -> None:
    (slurm / "running").write_text(f"5 1 {datetime.now():%Y-%m-%dT%H:%M:%S} NONE night\n")
    line: Any = Clock(until=3.5)
    qos = (QosPlan(name="night", grace_s=3600),)
    plan = SimpleNamespace(queues=(), requeues_ended_in_grace=True, accounts=SimpleNamespace(qos=qos))
    with pytest.raises(Over):
        rounds_of(Sound(line, plan=plan), slurm).run(line)
    assert count_calls(slurm, "squeue --noheader --states=RUNNING") == 4
