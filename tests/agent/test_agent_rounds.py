"""The keeper's loop: what it does, and how often. A part of it that fails is told once, and the others go on."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from corral.agent.errors import AgentError
from corral.agent.events import Journal
from corral.agent.memory import Memory
from corral.agent.rounds import Rounds
from corral.agent.world import SlurmNode


class Failing:
    """A keeper that answers, and cannot compare."""

    is_closing, nodes, memory = True, (), Memory()

    def __init__(self, error: Exception) -> None:
        self.error, self.answered = error, 0

    def answer(self, notes: Sequence[object], done: object) -> frozenset[str]:
        self.answered += 1
        return frozenset()

    def compare(self, asked_for: object, notes: object) -> None:
        raise self.error


def after_three(tmp_path: Path, error: Exception) -> tuple[Failing, Rounds]:
    keeper: Any = Failing(error)
    sign = tmp_path / "turned"
    rounds = Rounds(keeper=keeper, journal=Journal(None), spool=tmp_path, turn_s=0.0, sign=sign)
    for _ in range(3):
        rounds.go()
    return keeper, rounds


@pytest.mark.parametrize("error", [AgentError("EC2 is away"), OSError(28, "No space left"), RuntimeError("what?")])
def test_a_part_that_fails_does_not_keep_the_others(tmp_path: Path, error: Exception) -> None:
    keeper, _ = after_three(tmp_path, error)
    assert (keeper.answered, (tmp_path / "turned").exists()) == (3, True)


@pytest.mark.parametrize("error", [AgentError("EC2 is away"), OSError(28, "No space left"), RuntimeError("what?")])
def test_what_fails_is_told_once(tmp_path: Path, error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        after_three(tmp_path, error)
    assert len(caplog.messages) == 1


def test_what_fails_of_something_else_is_told_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    keeper, rounds = after_three(tmp_path, AgentError("EC2 is away"))
    keeper.error = AgentError("Slurm is away")
    with caplog.at_level(logging.ERROR):
        rounds.go()
    assert caplog.messages[-1] == "compare Slurm and EC2: Slurm is away"


TURN_S = 30.0
# What slurmctld says: a job of before its machine's boot, one that was requeued and waits for Slurm's delay alone.
SQUEUE = """#!/bin/sh
echo "squeue $*" >>"$HERE/calls"
[ -e "$HERE/away" ] && exit 1
case "$*" in
*--nodelist=*) echo "7 RUNNING 2026-11-21T22:39:00 train-1" ;;
*--states=PENDING*) cat "$HERE/waiting" ;;
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
    """A keeper that writes down when it answers and compares, and has the same nodes after each comparison."""

    clock: Clock
    fails: Collection[int] = ()  # the first time of answering is 1
    nodes: tuple[SlurmNode, ...] = ()
    is_closing: bool = False
    answered: list[float] = field(default_factory=list)
    compared: list[float] = field(default_factory=list)
    memory: Memory = Memory()  # noqa: RUF009  frozen
    plan: Any = field(default_factory=lambda: SimpleNamespace(queues=()))

    def answer(self, notes: Sequence[object], done: object) -> frozenset[str]:
        self.answered.append(self.clock())
        return frozenset({"train-9"} if len(self.answered) in self.fails else ())

    def compare(self, asked_for: object, notes: object) -> None:
        self.compared.append(self.clock())


@dataclass
class Clock:
    """Time that passes only while somebody listens on the line, whose bell never rings."""

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
    """The place of a Slurm that writes down what it is asked: in `calls`. Jobs that wait are in `waiting`."""
    for name, script in {"squeue": SQUEUE, "scontrol": SCONTROL}.items():
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "waiting").touch()
    (tmp_path / "calls").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HERE", str(tmp_path))
    return tmp_path


def asked(slurm: Path, words: str) -> int:
    """How often Slurm was asked so."""
    return sum(words in line for line in (slurm / "calls").read_text().splitlines())


def rounds_of(keeper: Sound, place: Path) -> Rounds:
    held: Any = keeper
    spool = place / "spool"
    spool.mkdir()
    sign = place / "turned"
    return Rounds(keeper=held, journal=Journal(None), spool=spool, turn_s=TURN_S, sign=sign, clock=keeper.clock)


def test_a_job_that_is_newly_delayed_makes_the_next_round_compare_and_no_other(slurm: Path) -> None:
    keeper = Sound(Clock())
    rounds = rounds_of(keeper, slurm)
    rounds.go()
    (slurm / "waiting").write_text(f"5 1 {datetime.now():%Y-%m-%dT%H:%M:%S} train BeginTime\n")
    compared = [rounds.go() or len(keeper.compared) for _ in range(3)]
    assert compared == [1, 2, 2]


def test_slurmctld_saves_what_a_comparison_has_seen(slurm: Path) -> None:
    rounds_of(Sound(Clock(), nodes=(NODE,)), slurm).go()
    assert asked(slurm, "scontrol update nodename=train-1 nodeaddr=10.0.0.1") == 1


def test_jobs_begin_anew_whose_machine_a_comparison_has_seen_boot_again(slurm: Path) -> None:
    rounds_of(Sound(Clock(), nodes=(NODE,)), slurm).go()
    assert asked(slurm, "scontrol requeue 7") == 1


def test_what_has_looked_at_the_nodes_of_a_comparison_is_not_shown_them_again(slurm: Path) -> None:
    rounds = rounds_of(Sound(Clock(), nodes=(NODE,)), slurm)
    rounds.go()
    rounds.go()
    assert asked(slurm, "squeue --noheader --all --states=configuring") == 1


def test_what_could_not_look_at_the_nodes_of_a_comparison_is_shown_them_again(slurm: Path) -> None:
    rounds = rounds_of(Sound(Clock(), nodes=(NODE,)), slurm)
    (slurm / "away").touch()
    rounds.go()
    (slurm / "away").unlink()
    rounds.go()
    assert asked(slurm, "scontrol requeue 7") == 1


@pytest.mark.parametrize(
    ("fails", "answered"),
    [(range(1, 9), [0, 2, 6, 14, 30, 60, 90]), ((1, 2, 4), [0, 2, 6, 36, 38, 68, 98])],
    ids=["for long", "twice and once more"],
)
def test_what_failed_is_tried_again_soon_and_then_less_often(
    slurm: Path, fails: Collection[int], answered: list[float]
) -> None:
    line: Any = Clock(until=100)
    keeper = Sound(line, fails=fails)
    with pytest.raises(Over):
        rounds_of(keeper, slurm).live(line)
    assert keeper.answered == answered
