"""Runs the Pulumi CLI: short calls directly, updates through the supervisor, with their events as they happen.

Like Pulumi's Automation API it calls the CLI, but it survives a kill: an update writes its events to a file instead of
a connection to this process, so an engine whose command was killed still completes, and its events can be read later.
The environment is exactly the given one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from corral.engine.pulumi import supervisor
from corral.engine.pulumi.binary import PulumiBinary

POLL_S = 0.1  # interval of reading new events; shorter delays look immediate
GRACEFUL_INTERRUPTS = 2  # interrupts that let the engine stop in order; the next one kills it

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CliResult:
    """Exit code and output of a CLI call."""

    code: int
    stdout: str
    stderr: str
    interrupts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateFiles:
    """The files for an update's events and the engine's output."""

    events: Path
    log: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class PulumiCli:
    """A Pulumi CLI with its environment."""

    binary: PulumiBinary
    environment: Mapping[str, str]

    def run(self, arguments: Sequence[str], directory: Path) -> CliResult:
        """Runs a short call. Returns its exit code and output."""
        done = subprocess.run(
            [self.binary.path, "--non-interactive", "--color=never", *arguments],
            cwd=directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return CliResult(code=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def update(
        self,
        arguments: Sequence[str],
        directory: Path,
        files: UpdateFiles,
        *,
        each: Callable[[Event], None],
        tick: Callable[[int], None],
        locks: Sequence[int] = (),
    ) -> CliResult:
        """Runs an update. `each` gets every event; `tick` is called often with the number of interrupts so far.

        `locks`: descriptors that stay open as long as the engine runs, even if this process is killed.
        """
        files.events.write_text("")
        files.log.write_text("")
        command = [str(self.binary.path), "--non-interactive", "--color=never", *arguments]
        command += ["--event-log", str(files.events)]
        environment = {**self.environment, "PULUMI_DEBUG_COMMANDS": "true"}  # the CLI hides --event-log without it
        with _supervised(command, directory, environment, files.log, locks) as process, _interrupts() as pressed:
            code = _follow(process, files.events, pressed, each, tick)
        return CliResult(code=code, stdout="", stderr=_tail(files.log), interrupts=len(pressed))


def _follow(
    process: subprocess.Popen[bytes],
    events: Path,
    pressed: list[int],
    each: Callable[[Event], None],
    tick: Callable[[int], None],
) -> int:
    sent = 0
    with events.open() as source:
        lines = _lines(source)
        while True:
            ended = _ended(process)
            for line in iter(lambda: next(lines), None):
                each(json.loads(line))
            if ended is not None:
                return ended
            tick(len(pressed))
            while sent < len(pressed):
                sent += 1
                _interrupt(process, sent)


def _ended(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(POLL_S)
    except subprocess.TimeoutExpired:
        return None


def _interrupt(process: subprocess.Popen[bytes], time: int) -> None:
    if time <= GRACEFUL_INTERRUPTS:
        process.send_signal(signal.SIGINT)
    else:
        os.killpg(process.pid, signal.SIGKILL)


def _lines(source: Any) -> Iterator[str | None]:
    """The complete lines of a growing file; None while there is no new one."""
    part = ""
    while True:
        part += source.readline()
        if part.endswith("\n"):
            yield part
            part = ""
        else:
            yield None


@contextmanager
def _supervised(
    command: Sequence[str], directory: Path, environment: Mapping[str, str], log: Path, locks: Sequence[int]
) -> Iterator[subprocess.Popen[bytes]]:
    watched, lifeline = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__, str(watched), str(log), *command],
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(watched, *locks),
            start_new_session=True,
        )
    finally:
        os.close(watched)
    with process:
        try:
            yield process
        finally:
            os.close(lifeline)


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """A block that records interrupts in a list instead of raising KeyboardInterrupt."""
    pressed: list[int] = []

    def count(number: int, frame: FrameType | None) -> None:
        pressed.append(number)

    before = {number: signal.signal(number, count) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield pressed
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tail(log: Path) -> str:
    with log.open("rb") as source:
        source.seek(max(0, log.stat().st_size - (64 << 10)))  # an error's text is at the end
        return source.read().decode(errors="replace")
