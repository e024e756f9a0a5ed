"""Every `corral` command that the pages and the help texts show is one that corral accepts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import pytest
import typer
from calls import REPOSITORY
from tools.docs.help_page import help_of_all_commands

from corral.cli.app import build

PAGES = [
    REPOSITORY / "README.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
    *(REPOSITORY / "docs/runbooks").iterdir(),
]
ENDS = {"|", ">", ">>", "<", "&&", ";", "..."}  # the shell's part of a line, or a place for the reader's words


def shown(text: str) -> Iterator[str]:
    """The command lines of a text, without what the shell does with them."""
    for line in re.findall(r"^    (?:\$ )?(corral [a-z].*)$", text, re.MULTILINE):
        yield shlex.join(takewhile(lambda word: word not in ENDS, shlex.split(line, comments=True)))


def commands() -> list[str]:
    texts = [*(page.read_text() for page in PAGES if page.name != "help.md"), *help_of_all_commands().values()]
    return sorted({line for text in texts for line in shown(text)})


def parse(command: Any, name: str, words: list[str], parent: Any = None) -> None:
    """Parse the words as corral does, and run nothing. Raises click's UsageError."""
    with command.make_context(name, words, parent=parent) as context:
        if hasattr(command, "resolve_command"):
            below, part, rest = command.resolve_command(context, [*context._protected_args, *context.args])
            parse(part, below, rest, context)


@pytest.mark.parametrize("line", commands())
def test_shown_command_is_accepted(line: str) -> None:
    name, *words = shlex.split(line)
    parse(typer.main.get_command(build()), name, words)


def test_most_pages_show_commands() -> None:
    assert len(commands()) > 100
