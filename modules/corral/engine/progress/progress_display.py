"""Shows the progress of the engine: plain lines for files and pipes, a few updating lines on a terminal.

The displays get records and seconds and do not know the engine.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol, TextIO

from corral.engine.progress.engine_events import Operation
from corral.engine.progress.progress_counter import FinishedStep, ProgressCounter, RunningStep

if TYPE_CHECKING:
    from rich.live import Live

ORDER = (
    Operation.CREATED,
    Operation.UPDATED,
    Operation.REPLACED,
    Operation.DELETED,
    Operation.RETAINED,
    Operation.IMPORTED,
    Operation.DRIFTED,
    Operation.MISSING,
    Operation.SAME,
)
DONE = "done"  # the result of a successful update
QUIET_S = 60  # of a plain display that waits
MAX_RUNNING = 8  # lines of running steps; more would scroll a small terminal
COLOURS = {
    Operation.CREATED: "green",
    Operation.UPDATED: "yellow",
    Operation.REPLACED: "yellow",
    Operation.DELETED: "red",
    Operation.MISSING: "red",
}


class ProgressDisplay(Protocol):
    """Shows progress to the user."""

    def write(self, text: str) -> None:
        """Prints permanent lines of text."""

    def begin(self, stack: str, doing: str, counter: ProgressCounter) -> None:
        """Starts the display of an update; the caller keeps the counter up to date."""

    def finished(self, line: FinishedStep) -> None:
        """Shows a finished step."""

    def tick(self) -> None:
        """Called often, for displays that show the time."""

    def end(self, result: str) -> None:
        """Ends the display with the result of the update."""


def choose_display(out: TextIO, environ: Mapping[str, str] = os.environ) -> ProgressDisplay:
    """The display for this stream: updating lines on a capable terminal, plain lines elsewhere."""
    if out.isatty() and environ.get("TERM") != "dumb":
        return TerminalDisplay(out, colour=not environ.get("NO_COLOR"))
    return PlainDisplay(out)


class PlainDisplay:
    """One line for each finished step; after a minute without one, what is waited for: a Lustre takes ten to delete."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._stack, self._tally, self._since_s, self._last_s = out, "", ProgressCounter(), 0.0, 0.0

    def write(self, text: str) -> None:
        """Prints the text."""
        self._last_s = time.monotonic()
        print(text, file=self._out, flush=True)

    def begin(self, stack: str, doing: str, counter: ProgressCounter) -> None:
        """Prints what begins."""
        self._stack, self._tally, self._since_s = stack, counter, time.monotonic()
        self.write(f"{stack}: {doing}")

    def finished(self, line: FinishedStep) -> None:
        """`created   aws:ec2:Vpc  network-vpc  1.2s`."""
        self.write(f"  {line_text(line)}")

    def tick(self) -> None:
        """Prints the steps that run if nothing was printed for QUIET_S."""
        now_s = time.monotonic()
        if now_s - self._last_s < QUIET_S:
            return
        if running := [step_text(one, now_s) for one in _longest_first(self._tally)]:
            self.write("\n".join(f"  {line}" for line in _shortened(running)))

    def end(self, result: str) -> None:
        """Prints the outcome of the update."""
        self.write(f"{self._stack}: {end_text(result, self._tally, time.monotonic() - self._since_s)}")


class TerminalDisplay:
    """A line per stack with counts, and the running steps with their seconds below it, until the stack is done."""

    def __init__(self, out: TextIO, *, colour: bool) -> None:
        from rich.console import Console

        system: Literal["auto"] | None = "auto" if colour else None  # without colour also without bold and dim
        self._console = Console(file=out, highlight=False, markup=False, emoji=False, color_system=system)
        self._live: Live | None = None
        self._stack, self._doing, self._tally, self._since_s = "", "", ProgressCounter(), 0.0

    def write(self, text: str) -> None:
        """Prints the text above the updating lines."""
        self._console.print(text, soft_wrap=True)

    def begin(self, stack: str, doing: str, counter: ProgressCounter) -> None:
        """Starts the updating lines."""
        from rich.live import Live

        self._stack, self._doing, self._tally, self._since_s = stack, doing, counter, time.monotonic()
        self._live = Live(console=self._console, transient=True, get_renderable=self._lines, refresh_per_second=5)
        self._live.start()

    def finished(self, line: FinishedStep) -> None:
        """Prints failures and drift; successes are only counted."""
        if line.failed or line.operation.is_drift:
            self._console.print(f"  {line_text(line)}", style="red" if line.failed else COLOURS.get(line.operation))

    def tick(self) -> None:
        """Does nothing: the lines refresh themselves."""

    def end(self, result: str) -> None:
        """Leaves one line with the result."""
        if self._live:
            self._live.stop()
            self._live = None
        self.write(f"{self._stack}: {end_text(result, self._tally, time.monotonic() - self._since_s)}")

    def _lines(self) -> str:
        now_s = time.monotonic()
        head = f"{self._stack}: {self._doing}: {counts_text(self._tally)}, {now_s - self._since_s:.0f} s"
        running = [step_text(one, now_s) for one in _longest_first(self._tally)]
        return "\n".join([head, *(f"  {line}" for line in _shortened(running))])


def _longest_first(counter: ProgressCounter) -> list[RunningStep]:
    """The running steps that change something."""
    running = sorted(counter.running.values(), key=lambda one: one.since_s)
    return [one for one in running if one.operation.is_change]


def _shortened(lines: list[str]) -> list[str]:
    more = [f"and {len(lines) - MAX_RUNNING} more"] if len(lines) > MAX_RUNNING else []
    return [*lines[:MAX_RUNNING], *more]


def step_text(step: RunningStep, now_s: float) -> str:
    """`deleting  aws:fsx:LustreFileSystem  lustre-scratch  60 s`."""
    return f"{step.operation.doing:<10}{step.resource.type}  {step.resource.name}  {now_s - step.since_s:.0f} s"


def line_text(line: FinishedStep) -> str:
    """`created   aws:ec2:Vpc  network-vpc  1.2s`."""
    word = f"{line.operation.doing} FAILED" if line.failed else line.operation
    return f"{word:<9} {line.resource.type}  {line.resource.name}  {line.took_s:.1f}s"


def end_text(result: str, counter: ProgressCounter, took_s: float) -> str:
    """`done: 3 created in 5 s`; `done: nothing to do` if there was no change."""
    nothing = "nothing to do" if result == DONE else "nothing done"
    return f"{result}: {counts_text(counter, nothing)} in {took_s:.0f} s"


def counts_text(counter: ProgressCounter, nothing: str = "nothing yet") -> str:
    """`3 created, 1 deleted, 12 same`, or the text for nothing."""
    parts = [
        f"{counter.counts[operation]} {operation_word(operation, is_preview=counter.is_preview)}"
        for operation in ORDER
        if counter.counts[operation]
    ]
    return ", ".join(parts) or nothing


def operation_word(operation: Operation, *, is_preview: bool) -> str:
    """`to create` in a plan, `created` afterwards."""
    return f"to {operation.verb}" if is_preview and operation.verb != operation.value else operation.value


def default_display(*, quiet_stdout: bool) -> ProgressDisplay:
    """The display for this process; on stderr if stdout is for a JSON document."""
    return choose_display(sys.stderr if quiet_stdout else sys.stdout)
