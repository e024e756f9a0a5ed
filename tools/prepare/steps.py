"""What all setup steps share: their interface, locks, the cache, subprocesses and output.

This code uses only the standard library of Python 3.8, because it runs before anything else is installed. The steps
themselves are in the other modules.
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
    """Something cannot be installed here; the message is one sentence for the user, with what to do."""


class Step(ABC):
    """One thing to install. Its name is that of its lock: two setups of the same thing wait for each other."""

    name: str

    @abstractmethod
    def missing(self) -> Sequence[str]:
        """Return one line for each thing to install, with its path; none if nothing is missing."""

    @abstractmethod
    def install(self) -> None:
        """Install it. Can be repeated after an interruption at any point. Raises CannotPrepareError."""

    @abstractmethod
    def ready(self) -> str:
        """Return a short description of what is installed."""


def run_steps(steps: Sequence[Step]) -> None:
    """Print what is missing, then install exactly that, each step under its lock."""
    missing = {step.name: step.missing() for step in steps}
    pending = [step for step in steps if missing[step.name]]
    if pending:
        say("To install, once:")
        for line in (line for step in pending for line in missing[step.name]):
            say(f"  {line}")
    for step in pending:
        with locked(step.name):
            if step.missing():  # another setup may have finished it while this one waited
                step.install()
    say("Ready: " + ", ".join(step.ready() for step in steps))


def say(line: str) -> None:
    """Print one line and flush, also into a pipe."""
    print(line, flush=True)


def cache_dir() -> Path:
    """Return this user's cache directory, for what is fetched or built once for all checkouts."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    directory = (base if base.is_absolute() else Path.home() / ".cache") / "corral"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotPrepareError(f"{directory} cannot be created ({error.strerror}): set XDG_CACHE_HOME.") from error
    return directory


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold this user's lock of that name. The kernel releases it when the process ends."""
    path = cache_dir() / f"{name}.lock"
    with path.open("a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"Waiting for another setup to finish ({path} is locked)")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def appearing_whole(target: Path) -> Iterator[Path]:
    """Yield a directory next to `target` that replaces it only if the block succeeds. Call it under a lock."""
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


def output_of(command: Sequence[str], env: Mapping[str, str] | None = None) -> str | None:
    """Return what a quick command prints, or None if it is missing or fails."""
    try:
        done = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def run_quietly(command: Sequence[str], error: str, env: Mapping[str, str] | None = None, cwd: Path = ROOT) -> None:
    """Run a program without showing its output; if it fails, show the end of that and raise `error`."""
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
        raise CannotPrepareError(error)


def show_end(output: str) -> None:
    """Print the last lines of a program's output, indented, as the reason for the sentence that follows."""
    lines = [line for line in output.splitlines() if line.strip() and "WARNING: Retrying" not in line]
    for line in lines[-6:]:  # enough for the last error of pip, uv or go, short enough to read
        print(f"    {line}", file=sys.stderr)


def numbers(version: str) -> tuple[int, ...]:
    """Return (1, 25, 11) for 'v1.25.11-rc1', for comparison."""
    digits = version.strip().lstrip("vgo").split("-")[0].split("+")[0].split(".")
    return tuple(int(part) for part in digits if part.isdigit())


def digest(*parts: bytes) -> str:
    """Return one hash over several texts, including their lengths."""
    total = hashlib.sha256()
    for part in parts:
        total.update(f"{len(part)}:".encode() + part)
    return total.hexdigest()
