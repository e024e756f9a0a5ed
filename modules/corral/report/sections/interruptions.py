"""How likely a run is to be interrupted, and how often, as time goes by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from corral.forecast.interruptions import InterruptionRate, Interruptions, chance_of_none
from corral.forecast.whole.course import Course
from corral.forecast.whole.run import WholeRun
from corral.report.amounts import duration, durations, three_digits
from corral.report.plots import Axis, Line, plot
from corral.report.sections.section import Section, Table, picture

_HOUR_S = 3600.0
_TIMES_H = (1.0, 24.0, 7 * 24.0, 30 * 24.0, 365 * 24.0)
_POINTS = 60
_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


def interruptions(run: WholeRun) -> Section:
    """The chance of an interruption against time, how many are to be expected, and what causes them."""
    ends_h = max((one.days.high or one.days.low) * 24 for one in run.courses)
    rates = _rates(run.courses)
    names = [name for name, _ in rates]
    times = (*(time for time in _TIMES_H if time < ends_h), ends_h)
    rows = tuple(
        (
            duration(time * _HOUR_S),
            *(cell for _, found in rates for cell in (_chances(found, time), _counts(found, time))),
        )
        for time in times
    )
    columns = ("after", *(f">{what}, {name}" for name in names for what in ("chance", "expected")))
    return Section(
        anchor="interruptions",
        title="How likely it is to be interrupted",
        lead="By failures of its machines, and by the spot market; from the fewest to the most that are published.",
        pictures=(picture(lambda width: _drawn(rates, ends_h, width)),),
        tables=(
            Table(caption="Chance of one at least, and how many", columns=columns, rows=rows),
            _causes(rates),
        ),
        lines=tuple(dict.fromkeys(source for _, found in rates for source in found.sources)),
    )


def _rates(courses: Sequence[Course]) -> list[tuple[str, Interruptions]]:
    """What interrupts it, under the names of the markets in which that is the same."""
    same = groupby(courses, key=lambda one: one.interruptions)
    found: dict[Interruptions, list[str]] = {}
    for one, group in same:
        found.setdefault(one, []).extend(course.market.value for course in group)
    return [(", ".join(names), one) for one, names in found.items()]


def _chances(found: Interruptions, hours: float) -> str:
    low, high = (1 - chance_of_none(per_h, hours) for per_h in (found.low_per_h, found.high_per_h))
    return f"{low:.1%} - {high:.1%}"


def _counts(found: Interruptions, hours: float) -> str:
    return f"{three_digits(found.low_per_h * hours)} - {three_digits(found.high_per_h * hours)}"


def _causes(rates: Sequence[tuple[str, Interruptions]]) -> Table:
    """Machines fail alike in every market."""
    causes = {rate.cause: rate for _, found in rates for rate in found.rates}
    rows = tuple((cause.value, _every(rate)) for cause, rate in causes.items())
    return Table(caption="What interrupts it", columns=("cause", ">every"), rows=rows)


def _every(rate: InterruptionRate) -> str:
    """`1 d - 9 d`; a cause that may not come at all is `1 d or less often`."""
    if not rate.high_per_h:
        return "never"
    shortest = _HOUR_S / rate.high_per_h
    return durations(shortest, _HOUR_S / rate.low_per_h) if rate.low_per_h else f"{duration(shortest)} or less often"


def _drawn(rates: Sequence[tuple[str, Interruptions]], ends_h: float, width: float) -> str:
    begins_h = min(1.0, ends_h / 100)
    lines = [_line(rate, names, (begins_h, ends_h)) for rate, names in _ends(rates).items()]
    ticks = (*(time for time in _TIMES_H if time < ends_h / 2), ends_h)
    x = Axis(words="time at work", low=begins_h, high=ends_h, ticks=ticks, shown=_shown, log=True)
    y = Axis(words="chance of an interruption", low=0.0, high=1.0, ticks=_QUARTERS, shown=lambda part: f"{part:.0%}")
    return plot("Chance of an interruption by time", x, y, lines, width=width)


def _shown(hours: float) -> str:
    return duration(hours * _HOUR_S)


def _ends(rates: Sequence[tuple[str, Interruptions]]) -> Mapping[float, list[str]]:
    """The fewest and the most in an hour, each with the names of what has it."""
    found: dict[float, list[str]] = {}
    for name, one in rates:
        found.setdefault(one.low_per_h, []).append(f"at least: {name}")
        found.setdefault(one.high_per_h, []).append(f"at most: {name}")
    return found


def _line(per_h: float, names: Sequence[str], hours: tuple[float, float]) -> Line:
    first_h, last_h = hours
    times = [first_h * (last_h / first_h) ** (place / (_POINTS - 1)) for place in range(_POINTS)]
    first, *others = names
    return Line(
        name=", ".join((first, *(name.partition(": ")[2] for name in others))),
        points=tuple((time, 1 - chance_of_none(per_h, time)) for time in times),
        dashed=first.startswith("at most"),
    )
