"""A timeline as one HTML file with its picture in it: nothing is fetched from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template

from corral.report.amounts import duration
from corral.report.timeline import Bar, Mark, Row, Timeline
from corral.report.timeline_text import heading_of, moment, ticks

_WIDTH = 1000.0  # of the picture's time axis, in the units of its coordinates
_ROW, _GAP = 26, 14  # heights of a row, and of the space before another kind of rows
_TOP = 34  # room for the scale
_NAMES, _NOTES = 190, 110  # room on the left and on the right
_LEAST = 1.5  # a bar that is too short to be seen is drawn so wide
_LABEL_FROM = 46.0  # a bar of this width has room for a word
_LONGEST_NAME = 26


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A bar as it is drawn."""

    x: float
    width: float
    state: str
    label: str
    tip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A mark as it is drawn."""

    x: float
    tip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row as it is drawn; `y` is its upper edge."""

    y: float
    name: str
    whole_name: str
    note: str
    boxes: tuple[Box, ...]
    points: tuple[Point, ...]


def page(shown: Timeline) -> str:
    """The whole HTML file."""
    lines = tuple(_lines(shown))
    height = (lines[-1].y if lines else _TOP) + _ROW + 8
    return _template().render(
        cluster=shown.cluster,
        heading=heading_of(shown),
        problem=shown.problem,
        lines=lines,
        ticks=[(round(_x(shown, at), 1), label) for at, label in ticks(shown.start, shown.end, int(_WIDTH / 7))],
        states=sorted({box.state for line in lines for box in line.boxes}),
        left=_NAMES,
        width=_WIDTH,
        whole_width=_NAMES + _WIDTH + _NOTES,
        height=height,
        row=_ROW,
        top=_TOP,
        events=[(moment(mark.at, shown), mark.kind, mark.text) for mark in _marks(shown)],
    )


def _lines(shown: Timeline) -> Iterator[Line]:
    y, kind = float(_TOP), ""
    for row in shown.rows:
        if kind and row.kind != kind:
            y += _GAP
        kind = row.kind
        short = row.name if len(row.name) <= _LONGEST_NAME else row.name[: _LONGEST_NAME - 1] + "…"
        yield Line(
            y=y,
            name=short,
            whole_name=row.name,
            note=row.note,
            boxes=tuple(_box(shown, row, bar) for bar in row.bars),
            points=tuple(Point(x=round(_x(shown, mark.at), 1), tip=_tip(mark, shown)) for mark in row.marks),
        )
        y += _ROW


def _box(shown: Timeline, row: Row, bar: Bar) -> Box:
    x = _x(shown, bar.start)
    width = max(_LEAST, _x(shown, bar.end) - x)
    took = duration((bar.end - bar.start).total_seconds())
    until = "now" if bar.goes_on else moment(bar.end, shown)
    label = str(bar.state)
    if row.kind == "node" and bar.state == "running":
        label = bar.text.partition(" (")[0]
    return Box(
        x=round(x, 1),
        width=round(width, 1),
        state=str(bar.state),
        label=label if width >= max(_LABEL_FROM, 8.0 * len(label)) else "",
        tip=f"{bar.state}: {bar.text}\n{moment(bar.start, shown)} to {until}, {took}",
    )


def _tip(mark: Mark, shown: Timeline) -> str:
    return f"{moment(mark.at, shown)} {mark.kind}: {mark.text}"


def _marks(shown: Timeline) -> list[Mark]:
    """Each event once, though several rows may have it."""
    return sorted({mark for row in shown.rows for mark in row.marks}, key=lambda mark: (mark.at, mark.kind, mark.text))


def _x(shown: Timeline, at: datetime) -> float:
    whole = max(1.0, (shown.end - shown.start).total_seconds())
    return (at - shown.start).total_seconds() / whole * _WIDTH


@cache
def _template() -> Template:
    source = files("corral").joinpath("templates", "report", "timeline.html.j2").read_text(encoding="utf-8")
    return Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    ).from_string(source)
