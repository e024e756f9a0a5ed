"""Amounts of US dollars that are known only as a range, as spot prices are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

HOURS_PER_MONTH = 730  # 365 * 24 / 12, as AWS's own calculator counts


@dataclass(frozen=True, slots=True)
class Usd:
    """An amount between `low` and `high`; both are equal where it is exact."""

    low: float
    high: float

    @classmethod
    def exact(cls, amount: float) -> Usd:
        """This amount and no other."""
        return cls(amount, amount)

    def times(self, factor: float) -> Usd:
        """So many times this amount."""
        return Usd(self.low * factor, self.high * factor)

    def plus(self, other: Usd) -> Usd:
        """The sum of both."""
        return Usd(self.low + other.low, self.high + other.high)


ZERO = Usd(0.0, 0.0)


def total(amounts: Iterable[Usd]) -> Usd:
    """The sum of all; zero of none."""
    result = ZERO
    for amount in amounts:
        result = result.plus(amount)
    return result


def span(amounts: Iterable[Usd]) -> Usd | None:
    """The range that holds all of them; None of none."""
    found = tuple(amounts)
    return Usd(min(a.low for a in found), max(a.high for a in found)) if found else None
