"""Generate docs/help.md, the help text of every corral command.

`python -m tools.docs.help_page` writes the page. A test fails if the page is out of date.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from corral.cli.app import build

PAGE = Path(__file__).parents[2] / "docs" / "help.md"
WIDTH = 100  # columns of a help text
HEADER = """# Help of every command

This page shows the output of `corral COMMAND --help`. It is generated: after you change a
command, run `.venv/bin/python -m tools.docs.help_page`. [cli.md](cli.md) adds exit codes and the JSON documents.
"""


def help_of_all_commands() -> Mapping[str, str]:
    """The help text of each command by its words, such as `corral box start`: WIDTH columns, no colour."""
    return dict(_help_texts(typer.main.get_command(build()), "corral", None))


def help_page() -> str:
    """The page: a section for each command, in the order of `corral --help`."""
    sections = (f"\n## {words}\n\n```text\n{text}\n```\n" for words, text in help_of_all_commands().items())
    return HEADER + "".join(sections)


def _help_texts(command: Any, words: str, parent: Any) -> Iterator[tuple[str, str]]:
    """The command, then its subcommands, depth first."""
    context = command.context_class(
        command,
        info_name=words.rpartition(" ")[2],
        parent=parent,
        **{**command.context_settings, "terminal_width": WIDTH, "color": False},
    )
    text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    yield words, text.strip()
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from _help_texts(command.get_command(context, name), f"{words} {name}", context)


if __name__ == "__main__":
    PAGE.write_text(help_page(), encoding="utf-8")
