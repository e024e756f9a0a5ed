"""What a section of the page consists of: pictures, tables, sentences. Text that stands in none of them is not said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from corral.report.charts import NARROW, WIDE


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One picture as SVG text, drawn twice: for a page, and for a telephone. A browser shows one of them."""

    wide: str
    narrow: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table. `columns`: names, of numbers with `>` in front; the first cell of each row is what the row is about."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name.removeprefix(">") for name in self.columns)

    @property
    def kinds(self) -> tuple[str, ...]:
        """`number` for each column of numbers, empty text for the others."""
        return tuple("number" if name.startswith(">") else "" for name in self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page: an anchor, a heading, what leads in, pictures, tables, sentences."""

    anchor: str
    title: str
    lead: str = ""
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    lines: tuple[str, ...] = ()


def picture(draw: Callable[[float], str]) -> Picture:
    """The picture at both widths. `draw` takes a width in pixels, at which text is as large as the page's."""
    return Picture(wide=draw(WIDE), narrow=draw(NARROW))
