"""Writes to stdout for all commands: tables and text for people, or one JSON document. Asks for confirmation."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any, Literal

from rich.console import Console, RenderableType

from corral.cli.support.terminal import refuses_colour


def show(parts: Iterable[RenderableType]) -> None:
    """Prints the parts: in colour on a terminal, plain elsewhere and with NO_COLOR."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # for terminals without line-drawing characters
    console = _console()
    with console.capture() as captured:
        for part in parts:
            console.print(part, crop=False)
    text = captured.get()
    if not console.is_terminal:  # tables pad their lines with spaces
        text = "\n".join(line.rstrip() for line in text.split("\n"))
    sys.stdout.write(text)


def show_json(document: Any) -> None:
    """Prints the document as indented JSON, keys in insertion order."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def show_lines(lines: Iterable[str]) -> None:
    """Prints lines of text verbatim."""
    for line in lines:
        sys.stdout.write(f"{line}\n")


def clear_screen() -> None:
    """Clears the terminal."""
    _console().clear()


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """A block during which a terminal shows a progress message; elsewhere nothing is shown."""
    console = _console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


def _console(*, stderr: bool = False) -> Console:
    system: Literal["auto"] | None = None if refuses_colour() else "auto"  # without colour also without bold and dim
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, color_system=system)


def confirm(question: str) -> bool:
    """Asks a yes/no question. True if the user answers yes; False without a terminal."""
    if not sys.stdin.isatty():
        return False
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:  # Ctrl-D
        return False
