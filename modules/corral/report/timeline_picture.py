"""A timeline as a picture: SVG text, as wide as there is room. Who points at a bar or a mark reads more of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from corral.report.amounts import duration
from corral.report.charts import LETTER
from corral.report.html import template
from corral.report.timeline import Bar, Mark, Row, Timeline
from corral.report.timeline_text import moment, ticks

_ROW, _GAP = 26, 14  # heights of a row, and of the space before another kind of rows
_TOP = 34  # room for the scale
_LEAST = 1.5  # a bar that is too short to be seen is drawn so wide
_LABEL_FROM = 46.0  # a bar of this width has room for a word
_LABEL_LETTER = 8.0  # width of a letter in a bar, with some air
_LEGEND, _LEGEND_ROW = 96, 20  # room for a word of the legend


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Where the time axis is in a picture `width` pixels wide: `left` of it stand names, right of it how jobs ended."""

    width: float

    @property
    def notes(self) -> float:
        """Room on the right; a narrow picture has none."""
        return 84.0 if self.width > 500 else 0.0

    @property
    def left(self) -> float:
        """Room on the left."""
        return 130.0 if self.width > 500 else 92.0

    @property
    def axis(self) -> float:
        """The length of the axis."""
        return self.width - self.left - self.notes - 8

    def x(self, shown: Timeline, at: datetime) -> float:
        """How far along the axis this moment is."""
        whole = max(1.0, (shown.end - shown.start).total_seconds())
        return (at - shown.start).total_seconds() / whole * self.axis


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


def drawn(shown: Timeline, width: float) -> str:
    """The picture, for a page on which text has its own size at this width."""
    frame = Frame(width=width)
    lines = tuple(_lines(shown, frame))
    bottom = (lines[-1].y if lines else _TOP) + _ROW + 4
    states = sorted({box.state for line in lines for box in line.boxes})
    legend = [*states, *(["event"] if any(line.points for line in lines) else [])]
    columns = max(1, int(width / _LEGEND))
    return template("timeline.svg.j2").render(
        cluster=shown.cluster,
        lines=lines,
        ticks=[(round(frame.x(shown, at), 1), label) for at, label in ticks(shown.start, shown.end, _cells(frame))],
        left=frame.left,
        width=frame.axis,
        whole_width=width,
        notes=bool(frame.notes),
        bottom=bottom,
        height=bottom + 10 + _LEGEND_ROW * -(-len(legend) // columns),
        row=_ROW,
        top=_TOP,
        legend=[
            (word, number % columns * _LEGEND, bottom + 10 + number // columns * _LEGEND_ROW)
            for number, word in enumerate(legend)
        ],
    )


def marks(shown: Timeline) -> Sequence[Mark]:
    """Each event once, though several rows may have it."""
    return sorted({mark for row in shown.rows for mark in row.marks}, key=lambda mark: (mark.at, mark.kind, mark.text))


def _cells(frame: Frame) -> int:
    """How many letters fit along the axis."""
    return int(frame.axis / LETTER)


def _lines(shown: Timeline, frame: Frame) -> Iterator[Line]:
    longest = int((frame.left - 8) / LETTER)
    y, kind = float(_TOP), ""
    for row in shown.rows:
        if kind and row.kind != kind:
            y += _GAP
        kind = row.kind
        short = row.name if len(row.name) <= longest else row.name[: longest - 1] + "…"
        yield Line(
            y=y,
            name=short,
            whole_name=row.name,
            note=row.note,
            boxes=tuple(_box(shown, frame, row, bar) for bar in row.bars),
            points=tuple(Point(x=round(frame.x(shown, mark.at), 1), tip=_tip(mark, shown)) for mark in row.marks),
        )
        y += _ROW


def _box(shown: Timeline, frame: Frame, row: Row, bar: Bar) -> Box:
    x = frame.x(shown, bar.start)
    width = max(_LEAST, frame.x(shown, bar.end) - x)
    took = duration((bar.end - bar.start).total_seconds())
    until = "now" if bar.goes_on else moment(bar.end, shown)
    label = str(bar.state)
    if row.kind == "node" and bar.state == "running":
        label = bar.text.partition(" (")[0]
    return Box(
        x=round(x, 1),
        width=round(width, 1),
        state=str(bar.state),
        label=label if width >= max(_LABEL_FROM, _LABEL_LETTER * len(label)) else "",
        tip=f"{bar.state}: {bar.text}\n{moment(bar.start, shown)} to {until}, {took}",
    )


def _tip(mark: Mark, shown: Timeline) -> str:
    return f"{moment(mark.at, shown)} {mark.kind}: {mark.text}"
