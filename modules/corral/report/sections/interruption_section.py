"""The probability and number of a run's interruptions over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from corral.forecast.interruptions import InterruptionRate, Interruptions, chance_of_none
from corral.forecast.run.market_forecast import MarketForecast
from corral.forecast.run.run_outlook import RunOutlook
from corral.report.charts.line_plots import Axis, Line, plot
from corral.report.formatting import duration, durations, three_digits
from corral.report.sections.section import Section, Table, picture

_HOUR_S = 3600.0
_TIMES_H = (1.0, 24.0, 7 * 24.0, 30 * 24.0, 365 * 24.0)
_POINTS = 60
_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bound:
    """An hourly rate that is the lowest ("at least") or highest ("at most") of these markets."""

    per_h: float
    kind: Literal["at least", "at most"]
    markets: tuple[str, ...]


def interruption_section(run: RunOutlook) -> Section:
    """The probability of an interruption over time, the expected number, and the causes."""
    ends_h = max((one.days.high or one.days.low) * 24 for one in run.markets)
    rates = _rates(run.markets)
    names = [name for name, _ in rates]
    times = (*(time for time in _TIMES_H if time < ends_h), ends_h)
    rows = tuple(
        (
            duration(time * _HOUR_S),
            *(cell for _, found in rates for cell in (_chances(found, time), _counts(found, time))),
        )
        for time in times
    )
    columns = ("after", *(f">{what}, {name}" for name in names for what in ("probability", "expected")))
    return Section(
        anchor="interruptions",
        title="Probability of interruptions",
        lead="By machine failures and spot reclaims; from the lowest to the highest published rates.",
        pictures=(picture(lambda width: _drawn(rates, ends_h, width)),),
        tables=(
            Table(caption="Probability of at least one, and expected number", columns=columns, rows=rows),
            _causes(rates),
        ),
        lines=tuple(dict.fromkeys(source for _, found in rates for source in found.sources)),
    )


def _rates(markets: Sequence[MarketForecast]) -> list[tuple[str, Interruptions]]:
    """The distinct interruption rates, each with the names of its markets."""
    same = groupby(markets, key=lambda one: one.interruptions)
    found: dict[Interruptions, list[str]] = {}
    for one, group in same:
        found.setdefault(one, []).extend(market.market.value for market in group)
    return [(", ".join(names), one) for one, names in found.items()]


def _chances(found: Interruptions, hours: float) -> str:
    low, high = (1 - chance_of_none(per_h, hours) for per_h in (found.low_per_h, found.high_per_h))
    return f"{low:.1%} - {high:.1%}"


def _counts(found: Interruptions, hours: float) -> str:
    return f"{three_digits(found.low_per_h * hours)} - {three_digits(found.high_per_h * hours)}"


def _causes(rates: Sequence[tuple[str, Interruptions]]) -> Table:
    """Machine failures are the same in every market."""
    causes = {rate.cause: rate for _, found in rates for rate in found.rates}
    rows = tuple((cause.value, _every(rate)) for cause, rate in causes.items())
    return Table(caption="Causes", columns=("cause", ">every"), rows=rows)


def _every(rate: InterruptionRate) -> str:
    """`1 d - 9 d`; `1 d or less often` if the cause may never occur."""
    if not rate.high_per_h:
        return "never"
    shortest = _HOUR_S / rate.high_per_h
    return durations(shortest, _HOUR_S / rate.low_per_h) if rate.low_per_h else f"{duration(shortest)} or less often"


def _drawn(rates: Sequence[tuple[str, Interruptions]], ends_h: float, width: float) -> str:
    begins_h = min(1.0, ends_h / 100)
    lines = [_line(bound, (begins_h, ends_h)) for bound in _bounds(rates)]
    ticks = (*(time for time in _TIMES_H if time < ends_h / 2), ends_h)
    x = Axis(words="training time", low=begins_h, high=ends_h, ticks=ticks, shown=_shown, log=True)
    y = Axis(
        words="probability of an interruption", low=0.0, high=1.0, ticks=_QUARTERS, shown=lambda part: f"{part:.0%}"
    )
    return plot("Probability of an interruption over time", x, y, lines, width=width)


def _shown(hours: float) -> str:
    return duration(hours * _HOUR_S)


def _bounds(rates: Sequence[tuple[str, Interruptions]]) -> Iterator[_Bound]:
    """The distinct lowest and highest rates."""
    ends = list[tuple[float, Literal["at least", "at most"], str]]()
    for name, one in rates:
        ends += [(one.low_per_h, "at least", name), (one.high_per_h, "at most", name)]
    for per_h in dict.fromkeys(per_h for per_h, _, _ in ends):
        same = [(kind, name) for other, kind, name in ends if other == per_h]
        yield _Bound(per_h=per_h, kind=same[0][0], markets=tuple(dict.fromkeys(name for _, name in same)))


def _line(bound: _Bound, hours: tuple[float, float]) -> Line:
    first_h, last_h = hours
    times = [first_h * (last_h / first_h) ** (step / (_POINTS - 1)) for step in range(_POINTS)]
    return Line(
        name=f"{bound.kind}: {', '.join(bound.markets)}",
        points=tuple((time, 1 - chance_of_none(bound.per_h, time)) for time in times),
        dashed=bound.kind == "at most",
    )
