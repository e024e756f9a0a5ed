"""Writes to stdout for all commands: tables and text for people, or one JSON document. Asks for confirmation.

All text is printable: much of it was written by others, such as tags of resources and files of a cloned project.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any, Literal

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

from corral.cli.support.terminal import refuses_colour
from corral.model.printable import printable_lines


class _Printable:
    """A part with the same styles and layout, in printable text: only rich itself writes sequences for terminals."""

    def __init__(self, part: RenderableType) -> None:
        self._part = part

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style, control in console.render(self._part, options):
            yield Segment(printable_lines(text), style, control)


def show(parts: Iterable[RenderableType]) -> None:
    """Prints the parts: in colour on a terminal, plain elsewhere and with NO_COLOR."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # for terminals without line-drawing characters
    console = _console()
    with console.capture() as captured:
        for part in parts:
            console.print(_Printable(part), crop=False)
    text = captured.get()
    if not console.is_terminal:  # tables pad their lines with spaces
        text = "\n".join(line.rstrip() for line in text.split("\n"))
    sys.stdout.write(text)


def show_json(document: Any) -> None:
    """Prints the document as indented JSON, keys in insertion order."""
    lines = json.dumps(document, indent=2, ensure_ascii=False).split("\n")
    sys.stdout.write("\n".join(map(_json_escaped, lines)) + "\n")


def _json_escaped(line: str) -> str:
    """The same JSON without characters that a terminal does not show: all of them are within strings."""
    if line.isprintable():
        return line
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1].replace("\x7f", "\\u007f") for one in line)


def show_lines(lines: Iterable[str]) -> None:
    """Prints lines of text, without breaking long ones."""
    for line in lines:
        sys.stdout.write(f"{printable_lines(line)}\n")


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
