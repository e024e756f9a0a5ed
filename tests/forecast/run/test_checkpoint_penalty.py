"""The cost of one checkpoint a day instead of the best interval."""

from __future__ import annotations

import pytest

from corral.forecast.goodput import time_shares
from corral.forecast.run.checkpoint_penalty import daily_checkpoint_penalty
from corral.forecast.run.run_outlook import RunOutlook
from shipped_run import shipped_run


@pytest.fixture(scope="module")
def whole() -> RunOutlook:
    """8B on 16 machines of the shipped `train`."""
    return shipped_run()


def test_slowdown_is_the_lost_progress(whole: RunOutlook) -> None:
    assert whole.checkpoints is not None
    course, policy = whole.markets[0], whole.checkpoints.policy
    best = course.range.worst
    rare = time_shares(86_400, policy, course.interruptions.high_per_h).progress
    assert daily_checkpoint_penalty(course, policy).longer == pytest.approx(best.shares.progress / rare - 1, rel=1e-3)


def test_additional_cost_is_that_of_the_nodes(whole: RunOutlook) -> None:
    assert whole.checkpoints is not None
    found = daily_checkpoint_penalty(whole.markets[0], whole.checkpoints.policy)
    nodes = whole.markets[0].charges[0].usd
    assert nodes is not None
    assert found.longer is not None
    assert found.usd == nodes.times(found.longer)
