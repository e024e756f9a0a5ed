"""Charts as SVG text that needs nothing else: bars of parts, ranges, curves. Pure functions of numbers and words.

Colours are names of the page's own style (`.c0` to `.c11`), so that light and dark pages have their own. Each picture
has a title for who does not see it, and everything that it shows stands in a table beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH = 720.0
_BAR, _GAP = 26.0, 10.0  # heights of a bar, and of the space below it
_NAMES, _WORDS = 120.0, 190.0  # room for words on the left and on the right
_COLOURS = 12
_PLOT, _EDGE = 220.0, 46.0  # height of a curve's picture, and room for its axes


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a whole; `words` are shown when it is pointed at."""

    name: str
    value: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """From the least to the most of something, with both in words. `high` is None where nothing bounds it."""

    name: str
    low: float
    high: float | None
    words: str


def stacked(title: str, parts: Sequence[Part], *, limit: float | None = None, limit_words: str = "") -> str:
    """One bar of all parts, with a line where the limit is, and a legend below."""
    total = sum(part.value for part in parts)
    most = max(total, limit or 0.0) * 1.02 or 1.0
    bars, x = list[str](), 0.0
    for number, part in enumerate(parts):
        width = part.value / most * _WIDTH
        tip = f"<title>{escape(part.words)}</title>"
        bars.append(
            f'<rect class="c{number % _COLOURS}" x="{x:.1f}" y="18" width="{width:.1f}" height="34">{tip}</rect>'
        )
        x += width
    if limit is not None:
        at = limit / most * _WIDTH
        bars.append(f'<path class="limit" d="M{at:.1f} 10V60"/>')
        anchor = "end" if at > _WIDTH / 2 else "start"
        bars.append(f'<text x="{at:.1f}" y="9" text-anchor="{anchor}">{escape(limit_words)}</text>')
    legend, height = _legend(parts)
    return _picture(title, 76 + height, [*bars, *legend])


def ranges(title: str, found: Sequence[Range]) -> str:
    """A bar for each range, on one scale from zero."""
    most = max([one.high or one.low for one in found], default=1.0) or 1.0
    room = _WIDTH - _NAMES - _WORDS
    drawn = list[str]()
    for row, one in enumerate(found):
        y = 4 + row * (_BAR + _GAP)
        low = _NAMES + one.low / most * room
        high = _NAMES + (one.high if one.high is not None else most) / most * room
        drawn.append(f'<text x="{_NAMES - 10:.0f}" y="{y + 17:.0f}" text-anchor="end">{escape(one.name)}</text>')
        tip = f"<title>{escape(one.words)}</title>"
        width = max(3.0, high - low)
        drawn.append(f'<rect class="c0" x="{low:.1f}" y="{y:.0f}" width="{width:.1f}" height="{_BAR:.0f}">{tip}</rect>')
        drawn.append(f'<text x="{low + width + 6:.1f}" y="{y + 17:.0f}">{escape(one.words)}</text>')
    return _picture(title, 8 + len(found) * (_BAR + _GAP), drawn)


def curve(
    title: str,
    points: Sequence[tuple[float, float]],
    *,
    x_words: str,
    y_words: str,
    marked: Sequence[tuple[float, str]],
) -> str:
    """A curve over a logarithmic axis; y are parts of 1. `marked`: places on the x axis, with words."""
    low, high = math.log10(points[0][0]), math.log10(points[-1][0])
    bottom = min(y for _, y in points)
    floor = max(0.0, math.floor(bottom * 20) / 20)

    def place(x: float, y: float) -> tuple[float, float]:
        across = _EDGE + (math.log10(x) - low) / (high - low) * (_WIDTH - 2 * _EDGE)
        return across, _PLOT - _EDGE - (y - floor) / (1 - floor) * (_PLOT - 2 * _EDGE)

    drawn = list(_axes(low, high, floor, place))
    line = "L".join(f"{across:.1f} {down:.1f}" for across, down in (place(x, y) for x, y in points))
    drawn.append(f'<path class="line" d="M{line}"/>')
    for row, (x, words) in enumerate(marked):
        across, _ = place(min(max(x, points[0][0]), points[-1][0]), 1.0)
        drawn.append(f'<path class="limit" d="M{across:.1f} {_EDGE:.0f}V{_PLOT - _EDGE:.0f}"/>')
        drawn.append(f'<text x="{across + 5:.1f}" y="{_EDGE - 6 - 14 * row:.0f}">{escape(words)}</text>')
    drawn.append(f'<text x="{_WIDTH / 2:.0f}" y="{_PLOT - 8:.0f}" text-anchor="middle">{escape(x_words)}</text>')
    drawn.append(f'<text x="4" y="14">{escape(y_words)}</text>')
    return _picture(title, _PLOT, drawn)


def _axes(low: float, high: float, floor: float, place: Callable[[float, float], tuple[float, float]]) -> Iterator[str]:
    for power in range(math.ceil(low), math.floor(high) + 1):
        across, _ = place(10.0**power, floor)
        yield f'<path class="grid" d="M{across:.1f} {_EDGE:.0f}V{_PLOT - _EDGE:.0f}"/>'
        yield f'<text x="{across:.1f}" y="{_PLOT - _EDGE + 16:.0f}" text-anchor="middle">{_seconds(10.0**power)}</text>'
    for step in range(3):
        y = floor + (1 - floor) * step / 2
        across, down = place(10.0**low, y)
        yield f'<path class="grid" d="M{across:.1f} {down:.1f}H{_WIDTH - _EDGE:.0f}"/>'
        yield f'<text x="{across - 6:.1f}" y="{down + 4:.1f}" text-anchor="end">{y:.0%}</text>'


def _seconds(value: float) -> str:
    return f"{value:,.0f} s"


def _legend(parts: Sequence[Part]) -> tuple[list[str], float]:
    """Names with their colours, three in a row, and the height that they take."""
    drawn = list[str]()
    for number, part in enumerate(parts):
        x, y = number % 3 * (_WIDTH / 3), 70 + number // 3 * 20
        drawn.append(f'<rect class="c{number % _COLOURS}" x="{x:.0f}" y="{y}" width="12" height="12"/>')
        drawn.append(f'<text x="{x + 18:.0f}" y="{y + 11}">{escape(part.name)}</text>')
    return drawn, math.ceil(len(parts) / 3) * 20.0


def _picture(title: str, height: float, drawn: Sequence[str]) -> str:
    inside = "\n".join(drawn)
    return (
        f'<svg viewBox="0 0 {_WIDTH:.0f} {height:.0f}" role="img" aria-label="{escape(title, quote=True)}">'
        f"<title>{escape(title)}</title>\n{inside}\n</svg>"
    )
