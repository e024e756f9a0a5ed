"""Numbers as people read them: dollars, durations, counts."""

from __future__ import annotations

from datetime import timedelta

from corral.forecast.cost.cost_range import Sum, Usd

_THREE_DIGITS = 100
_SIZES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_SMALL = 0.1  # below it, two decimals would hide most digits


def usd(amount: Usd | None) -> str:
    """`1.23`, `1.23 - 4.56`, or `?` if unknown; with four decimals below ten cents, as AWS lists such prices."""
    if amount is None:
        return "?"
    low, high = _dollars(amount.low), _dollars(amount.high)
    return low if low == high else f"{low} - {high}"


def summed(amount: Sum) -> str:
    """As `usd`; a sum with an unknown part is `at least 1.23`, or `?` if no part is known."""
    return f"at least {usd(amount.usd)}" if amount.usd and amount.missing else usd(amount.usd)


def lacking(amount: Sum) -> str:
    """` (no known price for ...)`, the suffix of a sum with an unknown part; empty for other sums."""
    return f" (no known price for {'; '.join(amount.missing)})" if amount.missing else ""


def count(number: float) -> str:
    """The number with thousands separators."""
    return f"{number:,.0f}"


def three_digits(number: float) -> str:
    """`0.167`, `12.5`, `1,655`: three significant digits, or all before the decimal point."""
    return f"{number:,.0f}" if number >= _THREE_DIGITS else f"{number:.3g}"


def short(number: float) -> str:
    """`500`, `20k`, `1.5M`: for ticks of an axis."""
    size, letter = next(((size, letter) for size, letter in _SIZES if number >= size), (1.0, ""))
    return f"{number / size:g}{letter}"


def duration(seconds: float) -> str:
    """`12 h`, `1 h 30 min`, `10 min`, `45 s`; days from two on."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    days, hours, minutes = whole // 86_400, whole % 86_400 // 3600, whole % 3600 // 60
    if days < 2:
        days, hours = 0, hours + 24 * days
    parts = ((days, "d"), (hours, "h"), (0 if days else minutes, "min"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def spread(low: float, high: float | None) -> str:
    """`9.6 - 11.8`, with one decimal; `9.6 or more` if unbounded."""
    return f"{low:,.1f} or more" if high is None else f"{low:,.1f} - {high:,.1f}"


def durations(low_s: float, high_s: float) -> str:
    """`1 h - 2 d`, or `1 h` if both have the same text."""
    low, high = duration(low_s), duration(high_s)
    return low if low == high else f"{low} - {high}"


def ago(span: timedelta) -> str:
    """The duration of something that still lasts."""
    return duration(max(span.total_seconds(), 0))


def _dollars(value: float) -> str:
    if 0 < float(f"{value:.4f}") < _SMALL:
        return f"{value:.4f}"
    return f"{value:,.2f}"
