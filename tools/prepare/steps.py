"""What every part of the set-up shares: what a step is, how one is run once, where things are kept, what is said.

No step lives here. Only the standard library is used, and nothing newer than Python 3.8, because this runs before there
is anything else.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class CannotPrepareError(Exception):
    """Something cannot be had here; the message is one sentence for the user, with what to do."""


class Step(ABC):
    """One thing that has to be there. Its name is its lock: two set-ups of the same thing wait for each other."""

    name: str

    @abstractmethod
    def missing(self) -> Sequence[str]:
        """Return one line for each thing that would be installed, with its place; none if all is there."""

    @abstractmethod
    def install(self) -> None:
        """Bring it in, or raise CannotPrepareError. Interrupted at any point, it can simply be called again."""

    @abstractmethod
    def ready(self) -> str:
        """Return the words that say what is there."""


def run_steps(steps: Sequence[Step]) -> None:
    """Say what is missing, then install exactly that, each step under its lock."""
    missing = {step.name: step.missing() for step in steps}
    pending = [step for step in steps if missing[step.name]]
    if pending:
        say("To be set up, once:")
        for line in (line for step in pending for line in missing[step.name]):
            say(f"  {line}")
    for step in pending:
        with locked(step.name):
            if step.missing():  # another set-up may have done it while this one waited
                step.install()
    say("Ready: " + ", ".join(step.ready() for step in steps))


def say(line: str) -> None:
    """Print one line at once, also into a pipe."""
    print(line, flush=True)


def cache_dir() -> Path:
    """Return the directory, one for each user, of what is fetched or built once for all checkouts."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    directory = (base if base.is_absolute() else Path.home() / ".cache") / "corral"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotPrepareError(f"{directory} cannot be made ({error.strerror}): set XDG_CACHE_HOME.") from error
    return directory


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock `name` of this user; the kernel frees it with the process, so none is ever left behind."""
    path = cache_dir() / f"{name}.lock"
    with path.open("a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"Waiting for another set-up to finish ({path} is held)")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def appearing_whole(target: Path) -> Iterator[Path]:
    """Yield a directory beside `target` that takes its place only if the block succeeds. Call it under a lock."""
    for left_over in target.parent.glob(f"{target.name}.unfinished-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    unfinished = target.with_name(f"{target.name}.unfinished-{os.getpid()}")
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        if target.exists():
            shutil.rmtree(target)
        unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def answer(command: Sequence[str], env: Mapping[str, str] | None = None) -> str | None:
    """Return what a quick question to a program prints, or None if it is not there or refuses."""
    try:
        done = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def work(command: Sequence[str], otherwise: str, env: Mapping[str, str] | None = None, cwd: Path = ROOT) -> None:
    """Run a program to its end, quietly; if it fails, show the end of what it said and raise `otherwise`."""
    done = subprocess.run(
        command,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        show_end(done.stdout)
        raise CannotPrepareError(otherwise)


def show_end(output: str) -> None:
    """Print the last lines of a program's output, indented, as the reason for the sentence that follows."""
    lines = [line for line in output.splitlines() if line.strip() and "WARNING: Retrying" not in line]
    for line in lines[-6:]:  # enough for the last error of pip, uv or go, short enough to read
        print(f"    {line}", file=sys.stderr)


def numbers(version: str) -> tuple[int, ...]:
    """Return 'v1.25.11-rc1' as (1, 25, 11), for comparing."""
    digits = version.strip().lstrip("vgo").split("-")[0].split("+")[0].split(".")
    return tuple(int(part) for part in digits if part.isdigit())


def digest(*parts: bytes) -> str:
    """Return one hash over several texts; their lengths are part of it."""
    total = hashlib.sha256()
    for part in parts:
        total.update(f"{len(part)}:".encode() + part)
    return total.hexdigest()
