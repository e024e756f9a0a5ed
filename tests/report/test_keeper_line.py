"""What `corral status` says of the keeper: nothing while all is well, one line with what to do where it is not."""

from __future__ import annotations

import pytest

from corral.model.head import HeadState, Keeping
from corral.report.jobs import keeper_problem

NOW = 1795300800  # 2026-11-21 22:40:00 UTC
TO_DO = ": no machine is launched or ended - on the head `start it` starts it, `read why` says why"


def said(turned: int | None, *, runs: bool) -> str:
    keeper = Keeping(runs=runs, turned=turned, start="start it", log="read why")
    return keeper_problem(
        HeadState(at=NOW, jobs=(), running=0, waiting=0, resting=(), stopped=(), nodes=(), keeper=keeper)
    )


@pytest.mark.parametrize("turned", [None, NOW - 5, NOW - 300])
def test_a_keeper_that_runs_and_turns_is_not_spoken_of(turned: int | None) -> None:
    assert said(turned, runs=True) == ""


def test_a_keeper_that_has_ended_is_said_with_its_time_and_what_to_do() -> None:
    assert said(NOW - 5, runs=False) == f"does not run since 22:39{TO_DO}"


def test_a_keeper_that_never_ran_is_said() -> None:
    assert said(None, runs=False) == f"does not run since the head booted{TO_DO}"


def test_a_keeper_that_hangs_is_said() -> None:
    assert said(NOW - 301, runs=True) == f"runs, but does nothing since 22:34{TO_DO}"
