"""Nested boxes with text as SVG. Boxes wrap like words: as many in a row as fit.

Pure: a box and a width give a height and SVG text. Colours are classes of the page's style, `box-KIND`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

from corral.report.charts.bar_charts import LETTER, svg

_PAD, _GAP = 8.0, 8.0  # padding of a box; gap between boxes
_LINE = 16.0  # height of a line of text
_SQUARE, _BETWEEN = 10.0, 3.0
_MAX_SQUARES = 64  # more would be too small to count


@dataclass(frozen=True, slots=True, kw_only=True)
class Squares:
    """A row of small squares for `count` items, of which the first `filled` are filled."""

    count: int
    filled: int

    @property
    def each(self) -> int:
        """The number of items per square."""
        return max(1, math.ceil(self.count / _MAX_SQUARES))

    @property
    def shown(self) -> tuple[int, int]:
        """The numbers of drawn and of filled squares."""
        return math.ceil(self.count / self.each), math.ceil(self.filled / self.each)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagramBox:
    """A box: a title, lines, squares, rows of boxes. `least`: its minimum width next to other boxes."""

    kind: str
    title: str
    lines: tuple[str, ...] = ()
    squares: Squares | None = None
    rows: tuple[tuple[DiagramBox, ...], ...] = ()
    least: float = 190.0


def drawing(title: str, boxes: Sequence[DiagramBox], width: float) -> str:
    """The boxes stacked vertically as one picture."""
    drawn, y = list[str](), 1.0
    for box in boxes:
        tall = height(box, width - 2)
        drawn += _draw(box, (1.0, y, width - 2, tall))
        y += tall + _GAP
    return svg(title, width, y, drawn)


def height(box: DiagramBox, width: float) -> float:
    """The height of the box at this width."""
    inner = width - 2 * _PAD
    tall = 2 * _PAD + _LINE * len(_words(box, inner)) + _squares_height(box, inner)
    return tall + sum(_GAP / 2 + _row_height(line, inner) for row in box.rows for line in _broken(row, inner))


def _draw(box: DiagramBox, frame: tuple[float, float, float, float]) -> Iterator[str]:
    x, y, width, tall = frame
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


def _row_height(line: Sequence[DiagramBox], inner: float) -> float:
    """The height of a row of boxes, with the gap below it."""
    across = (inner + _GAP) / len(line) - _GAP
    return max(height(one, across) for one in line) + _GAP / 2


def _broken(row: Sequence[DiagramBox], inner: float) -> list[Sequence[DiagramBox]]:
    """The row broken into lines of equal length, so that no box is narrower than its minimum width."""
    if not row:
        return []
    most = max(1, int((inner + _GAP) / (max(one.least for one in row) + _GAP)))
    lines = math.ceil(len(row) / most)
    each = math.ceil(len(row) / lines)
    return [row[start : start + each] for start in range(0, len(row), each)]


def _words(box: DiagramBox, inner: float) -> list[tuple[bool, str]]:
    """The wrapped lines of text, each with whether it belongs to the title."""
    columns = max(8, int(inner / LETTER))
    return [
        *((True, part) for part in wrap(box.title, int(columns * 0.93), break_on_hyphens=False)),
        *((False, part) for line in box.lines for part in wrap(line, columns, break_on_hyphens=False)),
    ]


def _in_a_row(inner: float) -> int:
    return max(1, int(inner / (_SQUARE + _BETWEEN)))


def _squares_height(box: DiagramBox, inner: float) -> float:
    if box.squares is None:
        return 0.0
    count, _ = box.squares.shown
    return math.ceil(count / _in_a_row(inner)) * (_SQUARE + _BETWEEN) + _BETWEEN


def _draw_squares(box: DiagramBox, x: float, y: float, inner: float) -> Iterator[str]:
    if box.squares is None:
        return
    count, filled = box.squares.shown
    for number in range(count):
        row, column = divmod(number, _in_a_row(inner))
        style = "full" if number < filled else "open"
        across, down = x + column * (_SQUARE + _BETWEEN), y + _BETWEEN + row * (_SQUARE + _BETWEEN)
        yield f'<rect class="{style}" x="{across:.1f}" y="{down:.1f}" width="{_SQUARE:.0f}" height="{_SQUARE:.0f}"/>'
