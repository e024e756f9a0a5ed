"""A timeline as an SVG of a given width. Bars and marks have tooltips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from corral.report.charts.bar_charts import LETTER
from corral.report.formatting import duration
from corral.report.html_templates import template
from corral.report.timeline.timeline import Bar, EventMark, Timeline, TimelineRow
from corral.report.timeline.timeline_text import ticks, time_text

_ROW, _GAP = 26, 14  # heights of a row, and of the gap between kinds of rows
_TOP = 34  # height of the scale
_MIN = 1.5  # minimum width of a bar, to be visible
_LABEL_FROM = 46.0  # minimum width of a bar with a label
_LABEL_LETTER = 8.0  # width of a letter in a bar, with some margin
_LEGEND, _LEGEND_ROW = 96, 20  # width and height of a legend entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The layout of a picture: names on the left, the time axis, final states of jobs on the right."""

    width: float

    @property
    def final_state_width(self) -> float:
        """Width of the final states on the right; 0 in a narrow picture."""
        return 84.0 if self.width > 500 else 0.0

    @property
    def left(self) -> float:
        """Width of the names on the left."""
        return 130.0 if self.width > 500 else 92.0

    @property
    def axis(self) -> float:
        """The length of the axis."""
        return self.width - self.left - self.final_state_width - 8

    def x(self, shown: Timeline, at: datetime) -> float:
        """The x position of this time on the axis."""
        whole = max(1.0, (shown.end - shown.start).total_seconds())
        return (at - shown.start).total_seconds() / whole * self.axis


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnBar:
    """A bar in pixels."""

    x: float
    width: float
    state: str
    label: str
    tip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnMark:
    """A mark in pixels."""

    x: float
    tip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnRow:
    """A row in pixels; `y` is its upper edge."""

    y: float
    name: str
    whole_name: str
    final_state: str
    boxes: tuple[DrawnBar, ...]
    points: tuple[DrawnMark, ...]


def draw_timeline(shown: Timeline, width: float) -> str:
    """The timeline as SVG of this width in pixels."""
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
        final_states=bool(frame.final_state_width),
        bottom=bottom,
        height=bottom + 10 + _LEGEND_ROW * -(-len(legend) // columns),
        row=_ROW,
        top=_TOP,
        legend=[
            (word, number % columns * _LEGEND, bottom + 10 + number // columns * _LEGEND_ROW)
            for number, word in enumerate(legend)
        ],
    )


def marks(shown: Timeline) -> Sequence[EventMark]:
    """The events of all rows, without duplicates."""
    return sorted({mark for row in shown.rows for mark in row.marks}, key=lambda mark: (mark.at, mark.kind, mark.text))


def _cells(frame: Frame) -> int:
    """The number of letters that fit along the axis."""
    return int(frame.axis / LETTER)


def _lines(shown: Timeline, frame: Frame) -> Iterator[DrawnRow]:
    longest = int((frame.left - 8) / LETTER)
    y, kind = float(_TOP), ""
    for row in shown.rows:
        if kind and row.kind != kind:
            y += _GAP
        kind = row.kind
        short = row.name if len(row.name) <= longest else row.name[: longest - 1] + "…"
        yield DrawnRow(
            y=y,
            name=short,
            whole_name=row.name,
            final_state=row.final_state,
            boxes=tuple(_box(shown, frame, row, bar) for bar in row.bars),
            points=tuple(DrawnMark(x=round(frame.x(shown, mark.at), 1), tip=_tip(mark, shown)) for mark in row.marks),
        )
        y += _ROW


def _box(shown: Timeline, frame: Frame, row: TimelineRow, bar: Bar) -> DrawnBar:
    x = frame.x(shown, bar.start)
    width = max(_MIN, frame.x(shown, bar.end) - x)
    lasted = duration((bar.end - bar.start).total_seconds())
    until = "now" if bar.ongoing else time_text(bar.end, shown)
    label = str(bar.state)
    if row.kind == "node" and bar.state == "running":
        label = bar.text.partition(" (")[0]
    return DrawnBar(
        x=round(x, 1),
        width=round(width, 1),
        state=str(bar.state),
        label=label if width >= max(_LABEL_FROM, _LABEL_LETTER * len(label)) else "",
        tip=f"{bar.state}: {bar.text}\n{time_text(bar.start, shown)} to {until}, {lasted}",
    )


def _tip(mark: EventMark, shown: Timeline) -> str:
    return f"{time_text(mark.at, shown)} {mark.kind}: {mark.text}"
