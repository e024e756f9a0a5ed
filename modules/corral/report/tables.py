"""The few shapes that all views are made of, so that they look alike at any width, with and without colour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

INDENT = 2


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
    """A table whose columns are right-aligned where their name begins with `>`; `total` is a last line of its own."""
    result = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", show_footer=bool(total))
    for number, name in enumerate(columns):
        footer = total[number] if total else ""
        justify = "right" if name.startswith(">") else "left"
        result.add_column(name.lstrip(">"), footer, justify=justify, overflow="fold", footer_style="bold")  # type: ignore[arg-type]
    for row in rows:
        result.add_row(*row)
    return Padding(result, (0, 0, 0, INDENT))


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
