"""A timeline on a terminal: one line per row, as wide as the terminal, with and without colour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from corral.report.formatting import duration
from corral.report.timeline.timeline import State, Timeline, TimelineRow

# Each state has its own character, so that nothing depends on colour.
_SHAPES: Mapping[State, tuple[str, str]] = {
    State.UP: ("─", "blue"),
    State.SILENT: ("╌", "dim"),
    State.BOOTING: ("░", "yellow"),
    State.IDLE: ("·", "dim"),
    State.RUNNING: ("█", "green"),
    State.NOTICE: ("▒", "red"),
    State.WAITING: ("┄", "yellow"),
}
_MARK, _MARK_STYLE = "▼", "red bold"
_DAY_S = 86400
_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
_STEPS_D = (1, 2, 7, 14, 28, 91, 364)
_MIN_COLUMNS = 20  # of the bars; a narrower terminal wraps
_NAME_COLUMNS = 22
_LABEL_COLUMNS = 10  # per tick of the scale: `22:40:15` and two blanks


class TimelineText:
    """A timeline that rich can print. `marks_by`: the command that explains its marks."""

    def __init__(self, shown: Timeline, marks_by: str) -> None:
        self._shown = shown
        self._marks_by = marks_by

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        names = min(_NAME_COLUMNS, max((cell_len(row.name) for row in self._shown.rows), default=4))
        final_state_width = max((cell_len(row.final_state) for row in self._shown.rows), default=0)
        columns = max(_MIN_COLUMNS, options.max_width - names - final_state_width - 5)
        yield from _line("", names, scale(self._shown.start, self._shown.end, columns), Style(dim=True))
        kind = ""
        for row in self._shown.rows:
            if row.kind != kind and kind:
                yield Segment.line()
            kind = row.kind
            yield Segment("  " + _fitted(row.name, names) + " ")
            yield from draw_row(row, self._shown, columns)
            yield Segment(f" {row.final_state}".rstrip())
            yield Segment.line()
        yield Segment.line()
        yield from _legend(self._shown, self._marks_by, options.max_width)


def draw_row(row: TimelineRow, shown: Timeline, columns: int) -> Iterator[Segment]:
    """The row's bars: each cell shows the state that fills most of it, or a mark."""
    cells: list[State | None] = [_state_at(row, *_span(shown, number, columns)) for number in range(columns)]
    marks = {_column(shown, mark.at, columns) for mark in row.marks}
    for number, state in enumerate(cells):
        if number in marks:
            yield Segment(_MARK, Style.parse(_MARK_STYLE))
        elif state is None:
            yield Segment(" ")
        else:
            shape, style = _SHAPES[state]
            yield Segment(shape, Style.parse(style))


def scale(start: datetime, end: datetime, columns: int) -> str:
    """Times of day above their columns, as many as fit, at round intervals."""
    whole = max(1.0, (end - start).total_seconds())
    line = [" "] * columns
    for at, label in ticks(start, end, columns):
        column = int((at - start).total_seconds() / whole * columns)
        if column + len(label) <= columns:
            line[column : column + len(label)] = label
    return "".join(line)


def ticks(start: datetime, end: datetime, columns: int) -> Iterator[tuple[datetime, str]]:
    """Round times with their labels, as many as fit into the columns. Midnight is labelled with its date."""
    whole = max(1.0, (end - start).total_seconds())
    steps = (*_STEPS_S, *(days * _DAY_S for days in _STEPS_D))
    step = next((one for one in steps if one / whole * columns >= _LABEL_COLUMNS), steps[-1])
    at = datetime.fromtimestamp((start.timestamp() // step + 1) * step, start.tzinfo)
    while at < end:
        yield at, f"{at:%m-%d}" if at.timestamp() % _DAY_S == 0 else f"{at:%H:%M:%S}" if step < 60 else f"{at:%H:%M}"
        at += timedelta(seconds=step)


def heading_of(shown: Timeline) -> str:
    """The period and its length."""
    lasted = duration((shown.end - shown.start).total_seconds())
    return f"{shown.start:%Y-%m-%d %H:%M:%S} to {time_text(shown.end, shown)} UTC, {lasted}"


def time_text(at: datetime, shown: Timeline) -> str:
    """The time of day, with the date if the timeline spans several days."""
    return f"{at:%H:%M:%S}" if shown.start.date() == shown.end.date() else f"{at:%Y-%m-%d %H:%M:%S}"


def _legend(shown: Timeline, marks_by: str, width: int) -> Iterator[Segment]:
    """The states shown, in lines no longer than the terminal."""
    states = {bar.state for row in shown.rows for bar in row.bars}
    words = [(shape * 2, style, f" {state}") for state, (shape, style) in _SHAPES.items() if state in states]
    if any(row.marks for row in shown.rows):
        words.append((_MARK, _MARK_STYLE, f" see `{marks_by}`"))
    column = 0
    for shape, style, word in words:
        if column and column + 2 + len(shape + word) > width:
            yield Segment.line()
            column = 0
        yield Segment("  ")
        yield Segment(shape, Style.parse(style))
        yield Segment(word)
        column += 2 + len(shape + word)
    yield Segment.line()


def _line(name: str, names: int, text: str, style: Style) -> Iterator[Segment]:
    yield Segment("  " + _fitted(name, names) + " ")
    yield Segment(text.rstrip(), style)
    yield Segment.line()


def _fitted(name: str, columns: int) -> str:
    text = Text(name)
    text.truncate(columns, overflow="ellipsis", pad=True)
    return text.plain


def _span(shown: Timeline, number: int, columns: int) -> tuple[datetime, datetime]:
    each = (shown.end - shown.start) / columns
    return shown.start + each * number, shown.start + each * (number + 1)


def _column(shown: Timeline, at: datetime, columns: int) -> int:
    whole = max(1.0, (shown.end - shown.start).total_seconds())
    return min(columns - 1, int((at - shown.start).total_seconds() / whole * columns))


def _state_at(row: TimelineRow, start: datetime, end: datetime) -> State | None:
    shares: Sequence[tuple[float, State]] = [
        ((min(bar.end, end) - max(bar.start, start)).total_seconds(), bar.state)
        for bar in row.bars
        if bar.start < end and bar.end > start
    ]
    return max(shares, key=lambda share: share[0])[1] if shares else None
