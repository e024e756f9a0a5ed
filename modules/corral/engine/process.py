"""Running the Pulumi CLI: short questions directly, updates through the supervisor, with their events as they happen.

This does what Pulumi's Automation API does - it calls the CLI - but survives a kill: an update's events come from a
file and not over a connection to this process, so that an engine whose command was killed misses nothing, and what it
did can still be read. The environment is exactly the one given.
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

from corral.engine import supervisor
from corral.engine.binary import Binary

LOOK_S = 0.1  # how often new events are looked for; the eye takes less for at once
PATIENCE = 2  # interrupts that the engine is given to end by itself; the next one kills it

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How a CLI call ended."""

    code: int
    stdout: str
    stderr: str
    interrupts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Where an update leaves its events and what the engine printed."""

    events: Path
    log: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A Pulumi CLI with its environment."""

    binary: Binary
    environment: Mapping[str, str]

    def ask(self, arguments: Sequence[str], directory: Path) -> Answer:
        """The end of a short call, with what it printed."""
        done = subprocess.run(
            [self.binary.path, "--non-interactive", "--color=never", *arguments],
            cwd=directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return Answer(code=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def update(
        self,
        arguments: Sequence[str],
        directory: Path,
        files: Files,
        *,
        each: Callable[[Event], None],
        tick: Callable[[int], None],
        locks: Sequence[int] = (),
    ) -> Answer:
        """The end of an update. `each` gets every event; `tick`, often, how many times Ctrl-C was pressed.

        The `locks` are descriptors that stay open as long as the engine runs, whatever becomes of this process.
        """
        files.events.write_text("")
        files.log.write_text("")
        command = [str(self.binary.path), "--non-interactive", "--color=never", *arguments]
        command += ["--event-log", str(files.events)]
        environment = {**self.environment, "PULUMI_DEBUG_COMMANDS": "true"}  # the CLI hides --event-log without it
        with _supervised(command, directory, environment, files.log, locks) as process, _interrupts() as pressed:
            code = _follow(process, files.events, pressed, each, tick)
        return Answer(code=code, stdout="", stderr=_tail(files.log), interrupts=len(pressed))


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
        return process.wait(LOOK_S)
    except subprocess.TimeoutExpired:
        return None


def _interrupt(process: subprocess.Popen[bytes], time: int) -> None:
    if time <= PATIENCE:
        process.send_signal(signal.SIGINT)
    else:
        os.killpg(process.pid, signal.SIGKILL)


def _lines(source: Any) -> Iterator[str | None]:
    """The complete lines of a file that grows; None where there is none yet."""
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
    """The interrupts that came so far; while they are counted they do nothing else."""
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
