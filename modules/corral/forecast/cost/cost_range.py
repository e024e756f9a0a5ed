"""US dollar amounts as ranges, since spot prices vary, and sums with unknown parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

HOURS_PER_MONTH = 730  # 365 * 24 / 12, as AWS's own calculator counts


@dataclass(frozen=True, slots=True)
class Usd:
    """An amount between `low` and `high`, which are equal for an exact amount."""

    low: float
    high: float

    @classmethod
    def exact(cls, amount: float) -> Usd:
        """An exact amount."""
        return cls(amount, amount)

    def times(self, factor: float) -> Usd:
        """The amount times the factor."""
        return Usd(self.low * factor, self.high * factor)

    def plus(self, other: Usd) -> Usd:
        """The sum of both."""
        return Usd(self.low + other.low, self.high + other.high)


ZERO = Usd(0.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """A sum. `missing`: the parts without a known price; the sum is then at least `usd.low`.

    `usd`: None if only free parts are known.
    """

    usd: Usd | None
    missing: tuple[str, ...] = ()

    @classmethod
    def of(cls, parts: Iterable[tuple[str, Usd | None]]) -> Sum:
        """The sum of these named amounts; zero without any."""
        return cls.together(cls(usd=usd, missing=() if usd else (what,)) for what, usd in parts)

    @classmethod
    def together(cls, sums: Iterable[Sum]) -> Sum:
        """The sum of these sums; zero without any."""
        found = tuple(sums)
        known = [one.usd for one in found if one.usd is not None]
        missing = tuple(dict.fromkeys(what for one in found for what in one.missing))
        usd = total(known)
        return cls(usd=usd if usd.high or not missing else None, missing=missing)

    def times(self, factor: float) -> Sum:
        """The sum times the factor."""
        return Sum(usd=self.usd.times(factor) if self.usd else None, missing=self.missing)


def total(amounts: Iterable[Usd]) -> Usd:
    """The sum; zero without any."""
    result = ZERO
    for amount in amounts:
        result = result.plus(amount)
    return result


def span(amounts: Iterable[Usd]) -> Usd | None:
    """The range that covers all of them; None without any."""
    found = tuple(amounts)
    return Usd(min(a.low for a in found), max(a.high for a in found)) if found else None
