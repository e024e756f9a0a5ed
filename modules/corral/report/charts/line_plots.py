"""Lines and points on two linear or logarithmic axes as SVG. Pure functions of numbers and labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from corral.report.charts.bar_charts import LETTER, WIDE, legend, svg

_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 14.0, 26.0, 40.0  # margins of the plot, for ticks and axis titles
_TALL = 270.0
_APART = 10.0  # minimum distance between two tick labels
_DOT, _LABEL = 4.0, 17.0  # radius of a point; distance of its number from it and from other numbers
_FEW = 3  # decades with intermediate ticks


Projection = Callable[[float, float], tuple[float, float]]  # from values to pixels, x and y


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis from `low` to `high`. `ticks`: the values of its ticks. `shown`: formats a tick's label."""

    words: str
    low: float
    high: float
    ticks: tuple[float, ...]
    shown: Callable[[float], str]
    log: bool = False

    def part(self, value: float) -> float:
        """The position of a value on the axis, from 0 to 1; values outside are clamped."""
        low, high, at = (math.log(one) if self.log else one for one in (self.low, self.high, max(value, self.low)))
        return min(1.0, (at - low) / (high - low))


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Points joined by a line, or squares with tooltips. `dashed`: an unreachable reference.

    `joined`: False draws a square per point. `tips`: the tooltips of the squares, in order.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    dashed: bool = False
    joined: bool = True
    tips: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisMark:
    """A labelled vertical line at a value of the first axis."""

    x: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A numbered point. `words`: its tooltip."""

    x: float
    y: float
    name: str
    words: str


def log_axis(words: str, low: float, high: float, shown: Callable[[float], str]) -> Axis:
    """A logarithmic axis from low to high."""
    return Axis(words=words, low=low, high=high, ticks=log_ticks(low, high), shown=shown, log=True)


def log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Powers of ten from low to high; if there are few decades, also twice and five times each."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first <= _FEW else (1,)
    found = (step * 10.0**power for power in range(first, last + 1) for step in steps)
    return tuple(tick for tick in found if low <= tick * (1 + 1e-9) and tick <= high * (1 + 1e-9))


def plot(
    title: str,
    x: Axis,
    y: Axis,
    lines: Sequence[Line],
    *,
    dots: Sequence[Dot] = (),
    marks: Sequence[AxisMark] = (),
    width: float = WIDE,
) -> str:
    """The lines and points on their axes, with a legend below if there are several."""

    def project(across: float, up: float) -> tuple[float, float]:
        across_px, tall = width - _LEFT - _RIGHT, _TALL - _TOP - _BOTTOM
        return _LEFT + x.part(across) * across_px, _TOP + (1 - y.part(up)) * tall

    drawn = [*_grid(x, y, project, width)]
    for number, line in enumerate(lines):
        points = [project(*point) for point in line.points]
        drawn += [_joined(number, line, points)] if line.joined else _squares(number, line, points)
    names = [line.name for line in lines] if len(lines) + len(dots) > 1 else []
    below, tall = legend(names, _TALL + 4, width)
    drawn += [*_marks(marks, x, project), *_dots(dots, project)]
    numbered = list(_numbered(dots, _TALL + 4 + tall, width))
    return svg(
        title, width, _TALL + 8 + tall + 20 * math.ceil(len(dots) / _columns(width)), [*drawn, *below, *numbered]
    )


def _joined(number: int, line: Line, points: Sequence[tuple[float, float]]) -> str:
    path = "L".join(f"{across:.1f} {down:.1f}" for across, down in points)
    style = f"line l{number}{' dashed' if line.dashed else ''}"
    return f'<path class="{style}" d="M{path}"><title>{escape(line.name)}</title></path>'


def _squares(number: int, line: Line, points: Sequence[tuple[float, float]]) -> Iterator[str]:
    for (across, down), tip in zip(points, line.tips, strict=True):
        geometry = f'x="{across - _DOT:.1f}" y="{down - _DOT:.1f}" width="{2 * _DOT:.0f}" height="{2 * _DOT:.0f}"'
        yield f'<rect class="c{number}" {geometry}><title>{escape(line.name)}: {escape(tip)}</title></rect>'


def _grid(x: Axis, y: Axis, project: Projection, width: float) -> Iterator[str]:
    free = 0.0  # right end of the last tick's label
    for tick in x.ticks:
        across, down = project(tick, y.low)
        words = x.shown(tick)
        half = len(words) * LETTER / 2
        yield f'<path class="grid" d="M{across:.1f} {_TOP:.0f}V{down:.1f}"/>'
        middle = min(across, width - half)
        if middle - half >= free:
            yield _text(words, middle, down + 15, "middle", quiet=True)
            free = middle + half + _APART
    for tick in y.ticks:
        across, down = project(x.low, tick)
        yield f'<path class="grid" d="M{across:.1f} {down:.1f}H{width - _RIGHT:.1f}"/>'
        yield _text(y.shown(tick), across - 6, down + 4, "end", quiet=True)
    yield _text(x.words, (width + _LEFT) / 2, _TALL - 6, "middle")
    yield _text(y.words, 2, 13)


def _text(words: str, x: float, y: float, anchor: str = "start", *, quiet: bool = False) -> str:
    style = ' class="quiet"' if quiet else ""
    return f'<text{style} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _marks(marks: Sequence[AxisMark], x: Axis, project: Projection) -> Iterator[str]:
    for row, mark in enumerate(marks):
        across, _ = project(mark.x, 0.0)
        left = x.part(mark.x) > 0.5
        yield f'<path class="limit" d="M{across:.1f} {_TOP:.0f}V{_TALL - _BOTTOM:.0f}"/>'
        yield _text(
            mark.words, across - 5 if left else across + 5, _TALL - _BOTTOM - 8 - 14 * row, "end" if left else "start"
        )


def _dots(dots: Sequence[Dot], project: Projection) -> Iterator[str]:
    """The points with their numbers below them, further down if another number is in the way."""
    taken: list[tuple[float, float]] = []
    for number, dot in enumerate(dots, start=1):
        across, down = project(dot.x, dot.y)
        below = down + _LABEL
        while any(abs(across - x) < _LABEL and abs(below - y) < _LABEL for x, y in taken):
            below += _LABEL
        taken.append((across, below))
        tip = f"<title>{escape(dot.words)}</title>"
        yield f'<path class="leader" d="M{across:.1f} {down:.1f}V{below - 9:.1f}"/>'
        yield f'<circle class="dot" cx="{across:.1f}" cy="{down:.1f}" r="{_DOT:.0f}">{tip}</circle>'
        yield _text(str(number), across, below + 4, "middle")


def _numbered(dots: Sequence[Dot], top: float, width: float) -> Iterator[str]:
    """The key of the numbers, below the legend of the lines."""
    columns = _columns(width)
    for number, dot in enumerate(dots):
        across, down = number % columns * (width / columns), top + number // columns * 20
        yield _text(f"{number + 1}: {dot.name}", across, down + 11)


def _columns(width: float) -> int:
    return max(1, int(width / 170))
