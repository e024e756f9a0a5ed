"""Boxes that hold words and other boxes, as SVG. They flow like words: as many in a row as there is room for.

Pure: a box and a width give a height and a text. Colours are classes of the page's style, `box-KIND`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

from corral.report.charts import LETTER, svg

_PAD, _GAP = 8.0, 8.0  # within a box, and between two
_LINE = 16.0  # height of a line of text
_SQUARE, _BETWEEN = 10.0, 3.0
_MOST_SQUARES = 64  # more are no longer counted by eye


@dataclass(frozen=True, slots=True, kw_only=True)
class Squares:
    """Small squares, one for each of `count` things or for `each` of many, of which the first `filled` are."""

    count: int
    filled: int

    @property
    def each(self) -> int:
        """How many things a square stands for."""
        return max(1, math.ceil(self.count / _MOST_SQUARES))

    @property
    def shown(self) -> tuple[int, int]:
        """How many squares are drawn, and how many of them filled."""
        return math.ceil(self.count / self.each), math.ceil(self.filled / self.each)


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A box: a title, lines, squares, and rows of boxes. `least`: the width below which it has a row for itself."""

    kind: str
    title: str
    lines: tuple[str, ...] = ()
    squares: Squares | None = None
    rows: tuple[tuple[Box, ...], ...] = ()
    least: float = 190.0


def drawing(title: str, boxes: Sequence[Box], width: float) -> str:
    """The boxes below each other, as one picture."""
    drawn, y = list[str](), 1.0
    for box in boxes:
        tall = height(box, width - 2)
        drawn += _draw(box, (1.0, y, width - 2, tall))
        y += tall + _GAP
    return svg(title, width, y, drawn)


def height(box: Box, width: float) -> float:
    """How tall the box is at this width."""
    inner = width - 2 * _PAD
    tall = 2 * _PAD + _LINE * len(_words(box, inner)) + _squares_height(box, inner)
    return tall + sum(_GAP / 2 + _row_height(line, inner) for row in box.rows for line in _broken(row, inner))


def _draw(box: Box, place: tuple[float, float, float, float]) -> Iterator[str]:
    x, y, width, tall = place
    yield (f'<rect class="box box-{box.kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{tall:.1f}" rx="4"/>')
    inner, down = width - 2 * _PAD, y + _PAD
    for strong, words in _words(box, inner):
        style = "strong" if strong else "quiet"
        yield f'<text class="{style}" x="{x + _PAD:.1f}" y="{down + 12:.1f}">{escape(words)}</text>'
        down += _LINE
    yield from _draw_squares(box, x + _PAD, down, inner)
    down += _squares_height(box, inner)
    for line in (line for row in box.rows for line in _broken(row, inner)):
        across, tall = (inner + _GAP) / len(line), _row_height(line, inner)
        down += _GAP / 2
        for number, one in enumerate(line):
            yield from _draw(one, (x + _PAD + number * across, down, across - _GAP, tall - _GAP / 2))
        down += tall


def _row_height(line: Sequence[Box], inner: float) -> float:
    """Of boxes beside each other, with what is below them."""
    across = (inner + _GAP) / len(line) - _GAP
    return max(height(one, across) for one in line) + _GAP / 2


def _broken(row: Sequence[Box], inner: float) -> list[Sequence[Box]]:
    """The row in lines of equally many boxes, so that none is narrower than its least width."""
    if not row:
        return []
    most = max(1, int((inner + _GAP) / (max(one.least for one in row) + _GAP)))
    lines = math.ceil(len(row) / most)
    each = math.ceil(len(row) / lines)
    return [row[start : start + each] for start in range(0, len(row), each)]


def _words(box: Box, inner: float) -> list[tuple[bool, str]]:
    """The lines of text, broken where they are too long; whether each is of the title."""
    room = max(8, int(inner / LETTER))
    return [
        *((True, part) for part in wrap(box.title, int(room * 0.93), break_on_hyphens=False)),
        *((False, part) for line in box.lines for part in wrap(line, room, break_on_hyphens=False)),
    ]


def _in_a_row(inner: float) -> int:
    return max(1, int(inner / (_SQUARE + _BETWEEN)))


def _squares_height(box: Box, inner: float) -> float:
    if box.squares is None:
        return 0.0
    count, _ = box.squares.shown
    return math.ceil(count / _in_a_row(inner)) * (_SQUARE + _BETWEEN) + _BETWEEN


def _draw_squares(box: Box, x: float, y: float, inner: float) -> Iterator[str]:
    if box.squares is None:
        return
    count, filled = box.squares.shown
    for number in range(count):
        row, column = divmod(number, _in_a_row(inner))
        style = "full" if number < filled else "open"
        across, down = x + column * (_SQUARE + _BETWEEN), y + _BETWEEN + row * (_SQUARE + _BETWEEN)
        yield f'<rect class="{style}" x="{across:.1f}" y="{down:.1f}" width="{_SQUARE:.0f}" height="{_SQUARE:.0f}"/>'
