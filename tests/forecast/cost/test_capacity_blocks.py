"""Capacity Blocks have fixed lengths: days up to 14, weeks up to 182 days."""

from __future__ import annotations

import pytest

from corral.forecast.cost.capacity_blocks import block_days


@pytest.mark.parametrize(
    ("days", "sold"), [(0.2, 1), (1.0, 1), (1.01, 2), (13.4, 14), (14.1, 21), (21.0, 21), (181.0, 182), (182.0, 182)]
)
def test_block_has_the_next_length_that_is_sold(days: float, sold: int) -> None:
    assert block_days(days) == sold


@pytest.mark.parametrize(("days", "sold"), [(183.0, 183), (200.0, 203), (364.0, 364), (365.5, 366)])
def test_longer_runs_need_consecutive_blocks(days: float, sold: int) -> None:
    assert block_days(days) == sold
