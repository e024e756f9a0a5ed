"""The keeper's loop where one of its parts fails: it is told once, and the others go on."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from corral.agent.errors import AgentError
from corral.agent.events import Journal
from corral.agent.memory import Memory
from corral.agent.rounds import Rounds


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
