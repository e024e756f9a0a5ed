"""Showing what an engine does: plain lines for files and pipes, a few lines that change in place for a terminal.

Both are given records and seconds; neither knows the engine. Where output goes and whether it is a terminal is said.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol, TextIO

from corral.engine.progress import Deed
from corral.engine.tally import Line, Tally

if TYPE_CHECKING:
    from rich.live import Live

ORDER = (
    Deed.CREATED,
    Deed.UPDATED,
    Deed.REPLACED,
    Deed.DELETED,
    Deed.KEPT,
    Deed.FOUND,
    Deed.DRIFTED,
    Deed.GONE,
    Deed.SAME,
)
DONE = "done"  # how an update ends that did all it was to do
MOST_RUNNING = 8  # lines of what is running now; more would scroll a small terminal
COLOURS = {
    Deed.CREATED: "green",
    Deed.UPDATED: "yellow",
    Deed.REPLACED: "yellow",
    Deed.DELETED: "red",
    Deed.GONE: "red",
}


class Printer(Protocol):
    """Whoever shows progress."""

    def say(self, text: str) -> None:
        """Shows lines of text that stay."""

    def begin(self, stack: str, doing: str, tally: Tally) -> None:
        """An update of this stack begins; the tally is kept up to date."""

    def finished(self, line: Line) -> None:
        """Something was done."""

    def tick(self) -> None:
        """Time has passed."""

    def end(self, result: str) -> None:
        """The update has ended like this."""


def printer(out: TextIO, environ: Mapping[str, str] = os.environ) -> Printer:
    """What suits this stream: lines in place on a terminal that can, plain lines elsewhere."""
    if out.isatty() and environ.get("TERM") != "dumb":
        return TerminalPrinter(out, colour=not environ.get("NO_COLOR"))
    return PlainPrinter(out)


class PlainPrinter:
    """One line for each thing done."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._stack, self._tally, self._since_s = out, "", Tally(), 0.0

    def say(self, text: str) -> None:
        """Writes the text."""
        print(text, file=self._out, flush=True)

    def begin(self, stack: str, doing: str, tally: Tally) -> None:
        """Says what begins."""
        self._stack, self._tally, self._since_s = stack, tally, time.monotonic()
        self.say(f"{stack}: {doing}")

    def finished(self, line: Line) -> None:
        """`created   aws:ec2:Vpc  network-vpc  1.2s`."""
        self.say(f"  {line_text(line)}")

    def tick(self) -> None:
        """Nothing: a file has no use for a clock."""

    def end(self, result: str) -> None:
        """Says what came of it."""
        self.say(f"{self._stack}: {end_text(result, self._tally, time.monotonic() - self._since_s)}")


class TerminalPrinter:
    """A line per stack with counts, and below it what is running, with its seconds; gone when the stack is done."""

    def __init__(self, out: TextIO, *, colour: bool) -> None:
        from rich.console import Console

        system: Literal["auto"] | None = "auto" if colour else None  # without colour also without bold and dim
        self._console = Console(file=out, highlight=False, markup=False, emoji=False, color_system=system)
        self._live: Live | None = None
        self._stack, self._doing, self._tally, self._since_s = "", "", Tally(), 0.0

    def say(self, text: str) -> None:
        """Writes the text above whatever changes in place."""
        self._console.print(text, soft_wrap=True)

    def begin(self, stack: str, doing: str, tally: Tally) -> None:
        """Opens the lines that change in place."""
        from rich.live import Live

        self._stack, self._doing, self._tally, self._since_s = stack, doing, tally, time.monotonic()
        self._live = Live(console=self._console, transient=True, get_renderable=self._lines, refresh_per_second=5)
        self._live.start()

    def finished(self, line: Line) -> None:
        """Failures stay on the screen, successes are counted."""
        if line.failed or line.deed.is_news:
            self._console.print(f"  {line_text(line)}", style="red" if line.failed else COLOURS.get(line.deed))

    def tick(self) -> None:
        """Nothing: the lines refresh themselves."""

    def end(self, result: str) -> None:
        """Leaves one line with the result."""
        if self._live:
            self._live.stop()
            self._live = None
        self.say(f"{self._stack}: {end_text(result, self._tally, time.monotonic() - self._since_s)}")

    def _lines(self) -> str:
        now_s = time.monotonic()
        running = sorted(self._tally.running.values(), key=lambda one: one.since_s)
        changing = [one for one in running if one.deed.is_change]
        head = f"{self._stack}: {self._doing}: {counts_text(self._tally)}, {now_s - self._since_s:.0f} s"
        shown = [
            f"  {one.deed.doing:<10}{one.subject.type}  {one.subject.name}  {now_s - one.since_s:.0f} s"
            for one in changing[:MOST_RUNNING]
        ]
        more = [f"  and {len(changing) - MOST_RUNNING} more"] if len(changing) > MOST_RUNNING else []
        return "\n".join([head, *shown, *more])


def line_text(line: Line) -> str:
    """`created   aws:ec2:Vpc  network-vpc  1.2s`."""
    word = f"{line.deed.doing} FAILED" if line.failed else line.deed
    return f"{word:<9} {line.subject.type}  {line.subject.name}  {line.took_s:.1f}s"


def end_text(result: str, tally: Tally, took_s: float) -> str:
    """`done: 3 created in 5 s`; `done: nothing to do` where everything was so already."""
    nothing = "nothing to do" if result == DONE else "nothing was done"
    return f"{result}: {counts_text(tally, nothing)} in {took_s:.0f} s"


def counts_text(tally: Tally, nothing: str = "nothing yet") -> str:
    """`3 created, 1 deleted, 12 same`, or the word for nothing."""
    parts = [f"{tally.counts[deed]} {deed_word(deed, is_plan=tally.is_plan)}" for deed in ORDER if tally.counts[deed]]
    return ", ".join(parts) or nothing


def deed_word(deed: Deed, *, is_plan: bool) -> str:
    """`to create` in a plan, `created` afterwards."""
    return f"to {deed.verb}" if is_plan and deed.verb != deed.value else deed.value


def default_printer(*, quiet_stdout: bool) -> Printer:
    """The printer for this process; on stderr where stdout belongs to a document."""
    return printer(sys.stderr if quiet_stdout else sys.stdout)
