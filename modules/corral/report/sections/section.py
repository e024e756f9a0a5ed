"""The parts of a section of an HTML page: pictures, tables, lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from corral.report.charts.bar_charts import NARROW, WIDE


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture as SVG text at two widths: for a page, and for a telephone. The browser shows one of them."""

    wide: str
    narrow: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table. `columns`: names; `>` marks a column of numbers. The first cell of a row is its header."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name.removeprefix(">") for name in self.columns)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The CSS class of each column: `number`, or empty."""
        return tuple("number" if name.startswith(">") else "" for name in self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of the page: anchor, heading, lead, pictures, tables, lines."""

    anchor: str
    title: str
    lead: str = ""
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    lines: tuple[str, ...] = ()


def picture(draw: Callable[[float], str]) -> Picture:
    """The picture at both widths. `draw`: draws it at a width in pixels, with text of the page's size."""
    return Picture(wide=draw(WIDE), narrow=draw(NARROW))
