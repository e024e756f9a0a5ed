"""Headings, tables and lists shared by all terminal views, at any width, with and without colour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

INDENT = 2
GAP = 3  # columns between two cells


def heading(title: str, rest: str = "") -> RenderableType:
    """The heading of a block: a bold title, then plain text."""
    return Text.assemble("\n", (title, "bold"), f"  {rest}" if rest else "")


def facts(rows: Iterable[tuple[str, str]]) -> RenderableType:
    """Names on the left; values on the right, wrapped in their own column."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    return Padding(table, (0, 0, 0, INDENT))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, total: Sequence[str] = ()) -> RenderableType:
    """A table. A `>` before a column's name aligns it to the right; `total` is the last row.

    Cells break only between words, since a broken id cannot be copied or searched for. Lines may be longer than the
    terminal; callers print with `crop=False`.
    """
    texts = tuple(tuple(" ".join(cell.split()) for cell in row) for row in rows)
    return _WholeWords(columns=tuple(columns), rows=texts, total=tuple(total))


@dataclass(frozen=True, slots=True, kw_only=True)
class _WholeWords:
    """A table that derives its widths from its words.

    rich's Table takes eight times as long: twenty tables were a tenth of the time of `corral plan`.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    total: tuple[str, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        between = GAP * (len(self.columns) - 1)
        names = tuple(name.lstrip(">") for name in self.columns)
        lines = (names, *self.rows, *([self.total] if self.total else []))
        widths = fitted(list(zip(*lines, strict=True)), options.max_width - INDENT - between)
        head = [_wrapped(name, width) for name, width in zip(names, widths, strict=True)]
        for parts in zip(*_at_the_bottom(head), strict=True):
            yield from self._drawn(parts, widths, Style(dim=True))
        yield Segment(" " * INDENT + "─" * min(sum(widths) + between, options.max_width - INDENT) + "\n")
        for row in self.rows:
            yield from self._drawn(row, widths)
        if self.total:
            yield Segment.line()
            yield from self._drawn(self.total, widths, Style(bold=True))

    def _drawn(self, cells: Sequence[str], widths: Sequence[int], style: Style | None = None) -> Iterator[Segment]:
        """The lines of a row, without trailing blanks: beyond the edge of a terminal they would be empty lines."""
        wrapped = [_wrapped(text, width) for text, width in zip(cells, widths, strict=True)]
        for parts in zip_longest(*wrapped, fillvalue=""):
            shown = map(_padded, parts, widths, self.columns)
            yield Segment(" " * INDENT)
            yield Segment((" " * GAP).join(shown).rstrip(), style)
            yield Segment.line()


def _at_the_bottom(cells: Sequence[list[str]]) -> list[list[str]]:
    """The cells padded with empty lines above to the height of the tallest."""
    most = max(map(len, cells))
    return [[*[""] * (most - len(cell)), *cell] for cell in cells]


def _padded(text: str, width: int, column: str) -> str:
    """The text padded to the width; right-aligned if the column's name starts with `>`."""
    blanks = " " * (width - cell_len(text))
    return blanks + text if column.startswith(">") else text + blanks


def _wrapped(text: str, width: int) -> list[str]:
    """The text wrapped between words."""
    if cell_len(text) <= width:
        return [text]
    found: list[str] = []
    for word in text.split():
        if found and cell_len(f"{found[-1]} {word}") <= width:
            found[-1] = f"{found[-1]} {word}"
        else:
            found.append(word)
    return found


def fitted(columns: Sequence[Sequence[str]], available: int) -> list[int]:
    """A width per column: that of its longest text, or less if wrapping makes the table fit."""
    widths = [max(map(cell_len, texts)) for texts in columns]
    least = [max((cell_len(word) for text in texts for word in text.split()), default=0) for texts in columns]
    while sum(widths) > available >= sum(least):
        widest = max(range(len(widths)), key=lambda number: (widths[number] > least[number], widths[number]))
        widths[widest] -= 1
    return widths


def lines(texts: Iterable[str]) -> RenderableType:
    """Lines of text, wrapped, with an indent."""
    return Padding(Group(*(Text(text, overflow="fold") for text in texts)), (0, 0, 0, INDENT))


class Footnotes:
    """Numbers for sources, in the order of their first use."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def mark(self, text: str | None) -> str:
        """The mark of this source, `[2]`; `[?]` without a source."""
        if text is None:
            return "[?]"
        if text not in self._texts:
            self._texts.append(text)
        return f"[{self._texts.index(text) + 1}]"

    def shown(self) -> RenderableType:
        """All marked sources with their numbers."""
        return facts((f"[{number}]", text) for number, text in enumerate(self._texts, start=1))

    def listed(self) -> tuple[str, ...]:
        """The same as lines of text."""
        return tuple(f"[{number}] {text}" for number, text in enumerate(self._texts, start=1))
