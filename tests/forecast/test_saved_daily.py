"""What it costs to save once a day instead of at the best interval."""

from __future__ import annotations

import pytest

from corral.forecast.reliability import time_shares
from corral.forecast.whole.rarely import saved_daily
from corral.forecast.whole.run import WholeRun
from shipped_run import shipped_run


@pytest.fixture(scope="module")
def whole() -> WholeRun:
    """8B on 16 machines of the shipped `train`."""
    return shipped_run()


def test_the_run_takes_longer_by_the_progress_that_it_lacks(whole: WholeRun) -> None:
    assert whole.saving is not None
    course, habits = whole.courses[0], whole.saving.habits
    best = course.range.worst
    rare = time_shares(86_400, habits, course.interruptions.high_per_h).progress
    assert saved_daily(course, habits).longer == pytest.approx(best.shares.progress / rare - 1, rel=1e-3)


def test_the_money_is_that_of_the_nodes_for_so_much_longer(whole: WholeRun) -> None:
    assert whole.saving is not None
    found = saved_daily(whole.courses[0], whole.saving.habits)
    nodes = whole.courses[0].charges[0].usd
    assert nodes is not None
    assert found.longer is not None
    assert found.usd == nodes.times(found.longer)
