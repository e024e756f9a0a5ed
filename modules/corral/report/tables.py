"""The few shapes that all views are made of, so that they look alike at any width, with and without colour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

INDENT = 2
GAP = 3  # columns between two cells: a blank, a bar that is not drawn, a blank


def heading(title: str, rest: str = "") -> RenderableType:
    """A line that begins a block: the title stands out, the rest does not."""
    return Text.assemble("\n", (title, "bold"), f"  {rest}" if rest else "")


def facts(rows: Iterable[tuple[str, str]]) -> RenderableType:
    """Names on the left, what they are on the right, wrapped in its own column."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    return Padding(table, (0, 0, 0, INDENT))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, total: Sequence[str] = ()) -> RenderableType:
    """A table whose columns are right-aligned where their name begins with `>`; `total` is a last line of its own.

    A cell is broken between words, never inside one: an id that is in two parts cannot be copied or searched for. Where
    that needs more room than there is, lines are longer than the terminal; it is printed with `crop=False`.
    """
    return _WholeWords(columns=tuple(columns), rows=tuple(map(tuple, rows)), total=tuple(total))


@dataclass(frozen=True, slots=True, kw_only=True)
class _WholeWords:
    """A table that takes its widths from its words."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    total: tuple[str, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        between = GAP * (len(self.columns) - 1)
        widths = fitted(self._texts(), options.max_width - INDENT - between)
        width = sum(widths) + between
        for line in console.render_lines(self._table(widths), options.update(width=width), pad=False):
            yield Segment(" " * INDENT)
            yield from _rule(line, options.max_width - INDENT) if _is_rule(line) else _trimmed(line)
            yield Segment.line()

    def _texts(self) -> list[list[str]]:
        """The texts of each column."""
        lines = (tuple(name.lstrip(">") for name in self.columns), *self.rows, *([self.total] if self.total else []))
        return [list(column) for column in zip(*lines, strict=True)]

    def _table(self, widths: Sequence[int]) -> Table:
        result = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
        result.show_footer = bool(self.total)
        for number, (name, width) in enumerate(zip(self.columns, widths, strict=True)):
            footer = self.total[number] if self.total else ""
            justify = "right" if name.startswith(">") else "left"
            result.add_column(name.lstrip(">"), footer, justify=justify, footer_style="bold", width=width)  # type: ignore[arg-type]
        for row in self.rows:
            result.add_row(*row)
        return result


def fitted(columns: Sequence[Sequence[str]], available: int) -> list[int]:
    """A width for each column of texts: what its longest text needs, or less where breaking between words helps."""
    widths = [max(map(cell_len, texts)) for texts in columns]
    least = [max((cell_len(word) for text in texts for word in text.split()), default=0) for texts in columns]
    while sum(widths) > available >= sum(least):
        widest = max(range(len(widths)), key=lambda number: (widths[number] > least[number], widths[number]))
        widths[widest] -= 1
    return widths


def _is_rule(line: Sequence[Segment]) -> bool:
    return set("".join(segment.text for segment in line)) == {"─"}


def _rule(line: Sequence[Segment], width: int) -> list[Segment]:
    """The rule below the names, which ends with the terminal however long the rows are."""
    return Segment.adjust_line_length(list(line), min(width, Segment.get_line_length(list(line))))


def _trimmed(line: Sequence[Segment]) -> list[Segment]:
    """The line without the blanks that fill its last cell: past the edge of a terminal they would make empty lines."""
    kept = list(line)
    while kept and not kept[-1].text.strip():
        kept.pop()
    if kept:
        last = kept[-1]
        kept[-1] = Segment(last.text.rstrip(), last.style)
    return kept


def lines(texts: Iterable[str]) -> RenderableType:
    """Sentences, one below the other, wrapped with a hanging indent."""
    return Padding(Group(*(Text(text, overflow="fold") for text in texts)), (0, 0, 0, INDENT))


class Footnotes:
    """Numbers for sources, in the order in which they are first named."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def mark(self, text: str | None) -> str:
        """The mark of this source, `[2]`; a question mark where there is no source at all."""
        if text is None:
            return "[?]"
        if text not in self._texts:
            self._texts.append(text)
        return f"[{self._texts.index(text) + 1}]"

    def shown(self) -> RenderableType:
        """All sources that were marked, with their numbers."""
        return facts((f"[{number}]", text) for number, text in enumerate(self._texts, start=1))
