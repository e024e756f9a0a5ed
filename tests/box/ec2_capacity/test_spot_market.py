"""The synthetic spot market: prices and scores."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from corral.box.ec2_capacity.spot_market import price_at, price_changes, score, score_of_types

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


@given(some.datetimes(timezones=some.just(UTC)), some.sampled_from(["use1-az1", "use1-az2", "usw2-az4"]))
def test_a_price_stays_in_its_range(change: datetime, zone: str) -> None:
    assert 17.6289 <= price_at("p5.48xlarge", zone, (17.6289, 55.04), change) <= 55.04


def test_a_price_is_the_same_at_every_query() -> None:
    parameters = [price_at("p5.48xlarge", "use1-az1", (17.6289, 55.04), NOON) for _ in range(2)]
    assert [round(price, 4) for price in parameters] == [36.2467, 36.2467]


def test_a_price_changes_twice_a_day_back_to_the_one_that_holds_at_the_start() -> None:
    start = NOON - timedelta(days=1)
    result = list(price_changes("p5.48xlarge", "use1-az1", start, NOON))
    assert (len(result), result[0] <= NOON, result[-1] <= start < result[-2]) == (3, True, True)


@pytest.mark.parametrize(("instances", "expected"), [(1, 7), (2, 6), (16, 3), (1000, 1)])
def test_a_score_falls_with_the_number_of_instances(instances: int, expected: int) -> None:
    assert score("p5.48xlarge", "use1-az1", instances) == expected


@pytest.mark.parametrize(("scores", "expected"), [([9], 3), ([9, 8], 3), ([1, 9, 5], 9), ([2], 2), ([], 1)])
def test_a_score_for_fewer_than_three_types_is_low(scores: list[int], expected: int) -> None:
    assert score_of_types(scores) == expected
