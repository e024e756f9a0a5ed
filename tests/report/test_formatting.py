"""Numbers as people read them."""

import pytest

from corral.forecast.cost.cost_range import Usd
from corral.report.formatting import duration, usd


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (None, "?"),
        (Usd(0, 0), "0.00"),
        (Usd(0.005, 0.005), "0.0050"),
        (Usd(0.00001, 0.00001), "0.00"),
        (Usd(0.4, 0.4), "0.40"),
        (Usd(2, 8.191), "2.00 - 8.19"),
        (Usd(2.001, 2.002), "2.00"),
        (Usd(14600, 14600), "14,600.00"),
    ],
)
def test_dollars(amount: Usd | None, text: str) -> None:
    assert usd(amount) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (45, "45 s"),
        (23.98, "24 s"),
        (600, "10 min"),
        (5400, "1 h 30 min"),
        (43_200, "12 h"),
        (90_000, "25 h"),
        (180_000, "2 d 2 h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
