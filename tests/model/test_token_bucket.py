"""A token bucket: what may be spent at once, and how it refills."""

import pytest

from corral.model.token_bucket import TokenBucket, full_bucket

TWO_PER_SECOND = full_bucket(capacity=1000, refill_per_s=2)


@pytest.mark.parametrize(
    ("spent", "wait_s"),
    [
        ([(0.0, 1000)], 0.0),
        ([(0.0, 1000), (0.0, 100)], 50.0),
        ([(0.0, 1000), (50.0, 100)], 0.0),
        ([(0.0, 1000), (49.0, 100)], 1.0),
        ([(9000.0, 1001)], 0.5),
        ([(50.0, 1000), (0.0, 100)], 50.0),
    ],
    ids=["full", "empty", "refilled", "nearly refilled", "never above its capacity", "a clock that runs backwards"],
)
def test_an_amount_that_is_not_available_must_wait_for_the_refill(
    spent: list[tuple[float, int]], wait_s: float
) -> None:
    bucket, wait = TWO_PER_SECOND, 0.0
    for at, amount in spent:
        bucket, wait = bucket.spend(amount, at)
    assert wait == wait_s


@pytest.mark.parametrize(
    ("tokens", "at", "amount", "left", "has_enough"),
    [
        (1000, 0, 1000, 0, True),
        (1000, 0, 1001, 1000, False),
        (0, 90, 20, 0, True),
        (0, 90, 21, 20, False),
        (900, 0, 1, 999, True),
    ],
)
def test_an_amount_that_is_not_available_is_not_taken(
    tokens: float, at: float, amount: float, left: float, has_enough: bool
) -> None:
    bucket = TokenBucket(capacity=1000, refill_per_s=2, tokens=tokens, at=at)
    assert bucket.take(amount, 100) == (
        TokenBucket(capacity=1000, refill_per_s=2, tokens=left, at=100),
        has_enough,
    )
