"""The line of `corral status` about a failed autoscaler, with the fix; none if it works."""

from __future__ import annotations

import pytest

from corral.model.head_report import AutoscalerStatus, HeadStatus
from corral.report.account.job_view import autoscaler_problem

NOW = 1795300800  # 2026-11-21 22:40:00 UTC
TO_DO = ": no instance is launched or terminated - on the head `start it` starts it, `read why` shows why"


def line(turned: int | None, *, runs: bool) -> str:
    autoscaler = AutoscalerStatus(is_running=runs, last_cycle=turned, start_command="start it", log_command="read why")
    return autoscaler_problem(
        HeadStatus(
            at=NOW, jobs=(), running=0, waiting=0, backoffs=(), disabled_queues=(), nodes=(), autoscaler=autoscaler
        )
    )


@pytest.mark.parametrize("turned", [None, NOW - 5, NOW - 300])
def test_working_autoscaler_has_no_line(turned: int | None) -> None:
    assert line(turned, runs=True) == ""


def test_stopped_autoscaler_is_shown_with_its_last_time_and_the_fix() -> None:
    assert line(NOW - 5, runs=False) == f"has not run since 22:39{TO_DO}"


def test_autoscaler_that_never_ran_is_shown() -> None:
    assert line(None, runs=False) == f"has not run since the head booted{TO_DO}"


def test_hanging_autoscaler_is_shown() -> None:
    assert line(NOW - 301, runs=True) == f"has done nothing since 22:34{TO_DO}"
