"""Amounts of US dollars that are known only as a range, as spot prices are, and sums of which a part is not known."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """A sum, `missing` what belongs to it and has no known price; it is `usd.low` at least then, however much more.

    `usd` is None where nothing of it is known but what is free.
    """

    usd: Usd | None
    missing: tuple[str, ...] = ()

    @classmethod
    def of(cls, parts: Iterable[tuple[str, Usd | None]]) -> Sum:
        """The sum of these named amounts; zero of none."""
        return cls.together(cls(usd=usd, missing=() if usd else (what,)) for what, usd in parts)

    @classmethod
    def together(cls, sums: Iterable[Sum]) -> Sum:
        """The sum of these sums; zero of none."""
        found = tuple(sums)
        known = [one.usd for one in found if one.usd is not None]
        missing = tuple(dict.fromkeys(what for one in found for what in one.missing))
        usd = total(known)
        return cls(usd=usd if usd.high or not missing else None, missing=missing)

    def times(self, factor: float) -> Sum:
        """So many times this sum."""
        return Sum(usd=self.usd.times(factor) if self.usd else None, missing=self.missing)


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
