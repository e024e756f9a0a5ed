"""Bar charts as self-contained SVG text: stacked bars and ranges. Pure functions of numbers and labels.

Colours are classes of the page's style (`.c0` to `.c11`, and the states of a timeline), so that light and dark pages
have their own. Each picture has a title for screen readers, and a table next to it has all of its figures. `width` is
in pixels at the page's text size: a picture for a telephone is narrower, with letters of the same size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDE, NARROW = 720.0, 340.0
_SMALL = 500.0  # in narrower pictures, labels are above the bars
_BAR, _GAP = 26.0, 10.0  # heights of a bar, and of the space below it
_NAMES, _MAX_NAMES = 120.0, 260.0  # minimum and maximum width of the names on the left
LETTER = 7.1  # width of a letter in DejaVu Sans, one of the widest fonts
_LINE = 15.0  # height of a line of text
_COLOURS = 12
_LEGEND = 170.0  # minimum width of a name in the legend


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a whole. `words`: its tooltip. `colour`: by default that of its index."""

    name: str
    value: float
    words: str
    colour: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A range. `words`: its label. `high`: None if unbounded."""

    name: str
    low: float
    high: float | None
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A bar of parts, which are the same in each row. `words`: its label."""

    name: str
    parts: Sequence[Part]
    words: str


def stacked(
    title: str, parts: Sequence[Part], *, limit: float | None = None, limit_words: str = "", width: float = WIDE
) -> str:
    """One bar of all parts, with a line at the limit and a legend below."""
    total = sum(part.value for part in parts)
    most = max(total, limit or 0.0) * 1.02 or 1.0
    colours = [part.colour or _colour(number) for number, part in enumerate(parts)]
    bars, x = list[str](), 0.0
    for colour, part in zip(colours, parts, strict=True):
        long = part.value / most * width
        bars.append(_bar(colour, (x, 18, long, 34), part.words))
        x += long
    if limit is not None:
        at = limit / most * width
        bars.append(f'<path class="limit" d="M{at:.1f} 14V60"/>')
        anchor = "end" if at > width / 2 else "start"
        bars.append(f'<text x="{at:.1f}" y="11" text-anchor="{anchor}">{escape(limit_words)}</text>')
    names, height = legend([part.name for part in parts], 70, width, colours)
    return svg(title, width, 76 + height, [*bars, *names])


def stacked_rows(title: str, rows: Sequence[Row], *, width: float = WIDE) -> str:
    """A bar of parts per row, on a common scale from zero, with a legend below."""
    most = max((sum(part.value for part in row.parts) for row in rows), default=0.0) or 1.0
    above = width < _SMALL  # the labels are above the bars
    names = 0.0 if above else min(_MAX_NAMES, 12 + LETTER * max((len(row.name) for row in rows), default=0))
    words = 0.0 if above else LETTER * max((len(row.words) for row in rows), default=0) + 12
    high, drawn, y = _BAR - 8, list[str](), 4.0
    for row in rows:
        if above:
            drawn.append(f'<text x="0" y="{y + 10:.0f}">{escape(f"{row.name}: {row.words}")}</text>')
            y += _LINE
        else:
            drawn.append(f'<text x="{names - 10:.0f}" y="{y + 13:.0f}" text-anchor="end">{escape(row.name)}</text>')
        x = names
        for number, part in enumerate(row.parts):
            long = part.value / most * (width - names - words)
            if long:
                drawn.append(_bar(part.colour or _colour(number), (x, y, long, high), part.words))
            x += long
        if not above:
            drawn.append(f'<text x="{x + 6:.1f}" y="{y + 13:.0f}">{escape(row.words)}</text>')
        y += high + (_GAP if above else 5)
    parts = rows[0].parts if rows else ()
    colours = [part.colour or _colour(number) for number, part in enumerate(parts)]
    keys, height = legend([part.name for part in parts], y + 8, width, colours)
    return svg(title, width, y + 14 + height, [*drawn, *keys])


def ranges(title: str, found: Sequence[Range], *, width: float = WIDE) -> str:
    """A bar per range, on a common scale from zero."""
    most = max([one.high or one.low for one in found], default=1.0) or 1.0
    if width < _SMALL:
        return _narrow_ranges(title, found, most, width)
    names = min(_MAX_NAMES, max(_NAMES, 12 + LETTER * max((len(one.name) for one in found), default=0)))
    plot_width = width - names - max((LETTER * len(one.words) for one in found), default=0) - 12
    drawn = list[str]()
    for row, one in enumerate(found):
        y = 4 + row * (_BAR + _GAP)
        low = names + one.low / most * plot_width
        high = names + (one.high if one.high is not None else most) / most * plot_width
        drawn.append(f'<text x="{names - 10:.0f}" y="{y + 17:.0f}" text-anchor="end">{escape(one.name)}</text>')
        long = max(3.0, high - low)
        drawn.append(_track((names, y, low - names, _BAR)))
        drawn.append(_bar(_colour(0), (low, y, long, _BAR), one.words))
        drawn.append(f'<text x="{low + long + 6:.1f}" y="{y + 17:.0f}">{escape(one.words)}</text>')
    return svg(title, width, 8 + len(found) * (_BAR + _GAP), drawn)


def _narrow_ranges(title: str, found: Sequence[Range], most: float, width: float) -> str:
    """The same with the labels above the bars, in two lines if one is too long."""
    drawn, y = list[str](), 14.0
    for one in found:
        whole = f"{one.name}: {one.words}"
        for line in (whole,) if LETTER * len(whole) <= width else (f"{one.name}:", one.words):
            drawn.append(f'<text x="0" y="{y:.0f}">{escape(line)}</text>')
            y += _LINE
        low, high = (end / most * width for end in (one.low, most if one.high is None else one.high))
        drawn.append(_track((0, y - 10, low, _BAR - 8)))
        drawn.append(_bar(_colour(0), (low, y - 10, max(3.0, high - low), _BAR - 8), one.words))
        y += _BAR + 2 * _GAP - _LINE
    return svg(title, width, y - 6, drawn)


def _colour(number: int) -> str:
    """The colour of the item with this index."""
    return f"c{number % _COLOURS}"


def _bar(colour: str, box: tuple[float, float, float, float], words: str) -> str:
    """A bar. `box`: left edge, top, width, height. `words`: its tooltip."""
    x, y, width, height = box
    tip = f"<title>{escape(words)}</title>"
    geometry = f'x="{x:.1f}" y="{y:.0f}" width="{width:.1f}" height="{height:.0f}"'
    return f'<rect class="{colour}" {geometry}>{tip}</rect>'


def _track(box: tuple[float, float, float, float]) -> str:
    """The track from zero to the low end of a range."""
    x, y, width, height = box
    return f'<rect class="track" x="{x:.1f}" y="{y:.0f}" width="{max(0.0, width):.1f}" height="{height:.0f}"/>'


def legend(names: Sequence[str], top: float, width: float, colours: Sequence[str] = ()) -> tuple[list[str], float]:
    """The names with their colours below `top`, in as many columns as fit, and the height that they take.

    `colours`: by default those of their indexes.
    """
    each = max([_LEGEND, *(26 + LETTER * len(name) for name in names)])
    drawn, columns = list[str](), max(1, int(width / each))
    for number, name in enumerate(names):
        x, y = number % columns * (width / columns), top + number // columns * 20
        colour = colours[number] if colours else _colour(number)
        drawn.append(f'<rect class="{colour}" x="{x:.0f}" y="{y:.0f}" width="12" height="12"/>')
        drawn.append(f'<text x="{x + 18:.0f}" y="{y + 11:.0f}">{escape(name)}</text>')
    return drawn, math.ceil(len(names) / columns) * 20.0


def svg(title: str, width: float, height: float, drawn: Sequence[str]) -> str:
    """The drawn elements as one picture, with a title for screen readers."""
    inside = "\n".join(drawn)
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(title, quote=True)}">'
        f"<title>{escape(title)}</title>\n{inside}\n</svg>"
    )
