"""The one way in which commands write to stdout: tables and sentences for people, or one JSON document."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any, Literal

from rich.console import Console, RenderableType

from corral.cli.terminal import refuses_colour


def show(parts: Iterable[RenderableType]) -> None:
    """Prints the parts, one below the other: in colour on a terminal, plain elsewhere and under NO_COLOR."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that knows no line-drawing characters
    console = _console()
    with console.capture() as captured:
        for part in parts:
            console.print(part, crop=False)
    text = captured.get()
    if not console.is_terminal:  # tables fill their lines with blanks, which only disturb in a file
        text = "\n".join(line.rstrip() for line in text.split("\n"))
    sys.stdout.write(text)


def show_json(document: Any) -> None:
    """Prints the document, indented, keys in the order in which they were made."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def show_lines(lines: Iterable[str]) -> None:
    """Prints lines of text as they are."""
    for line in lines:
        sys.stdout.write(f"{line}\n")


def clear() -> None:
    """Empties the terminal."""
    _console().clear()


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """A block during which a terminal shows that something is being done; elsewhere nothing is shown."""
    console = _console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


def _console(*, stderr: bool = False) -> Console:
    system: Literal["auto"] | None = None if refuses_colour() else "auto"  # without colour also without bold and dim
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, color_system=system)


def ask(question: str) -> bool:
    """True if the user answers yes; without a terminal nobody is asked and nobody said yes."""
    if not sys.stdin.isatty():
        return False
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:  # Ctrl-D
        return False
