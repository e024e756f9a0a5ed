"""All-reduce bandwidth by message size as SVG: a line per algorithm, and measured points. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corral.report.charts.bar_charts import WIDE
from corral.report.charts.line_plots import Axis, Line, plot

_STEPS = (1, 2, 2.5, 5, 10)
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def over_sizes(title: str, lines: Sequence[Line], *, y_words: str, width: float = WIDE) -> str:
    """The lines over a logarithmic axis of sizes and a linear axis from zero."""
    sizes = [x for line in lines for x, _ in line.points]
    step = _step(max(y for line in lines for _, y in line.points))
    steps = math.ceil(max(y for line in lines for _, y in line.points) / step)
    x = Axis(
        words="message",
        low=min(sizes),
        high=max(sizes),
        ticks=_ticks(min(sizes), max(sizes)),
        shown=size_words,
        log=True,
    )
    y = Axis(
        words=y_words,
        low=0.0,
        high=step * steps,
        ticks=tuple(number * step for number in range(steps + 1)),
        shown=lambda rate: f"{rate:,g}",
    )
    return plot(title, x, y, lines, width=width)


def size_words(size: float) -> str:
    """`64 KiB`, `16 GiB`."""
    power = min(len(_UNITS) - 1, int(math.log2(size) // 10))
    return f"{size / 1024**power:,.0f} {_UNITS[power]}"


def _ticks(low: float, high: float) -> tuple[float, ...]:
    """The sizes of the ticks: each 16 times the one before."""
    powers = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    return tuple(2.0**power for power in powers if power % 4 == 0)


def _step(most: float) -> float:
    """A round distance between two ticks that gives four to eight ticks."""
    power = math.pow(10, math.floor(math.log10(most / 5)))
    return next(factor * power for factor in _STEPS if factor * power >= most / 8)
