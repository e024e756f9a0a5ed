"""The tree of commands as one typer app. A command's module is imported only when that command is used."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from corral import __version__
from corral.cli.help_page import ENTRIES, front_page
from corral.cli.support.exit_codes import ExitCode
from corral.cli.support.options import HELP_NAMES
from corral.cli.support.terminal import wants_colour


class _Commands(Mapping[str, Any]):
    """The commands by name; reading one imports its module."""

    def __getitem__(self, name: str) -> Any:
        command: Any = typer.main.get_command(importlib.import_module(ENTRIES[name].module).app)
        command.name = name
        return command

    def __contains__(self, name: object) -> bool:
        return name in ENTRIES

    def __iter__(self) -> Iterator[str]:
        return iter(ENTRIES)

    def __len__(self) -> int:
        return len(ENTRIES)


class LazyGroup(TyperGroup):
    """The group `corral`: its help page comes from the table of commands alone."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of the table."""
        return list(ENTRIES)

    def get_help(self, ctx: Any) -> str:
        """The front page."""
        return front_page(bold=wants_colour())


def run(arguments: Sequence[str]) -> int:
    """Runs the command. Returns its exit code; the caller reports exceptions."""
    result = typer.main.get_command(build()).main(list(arguments), prog_name="corral", standalone_mode=False)
    if result == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt  # typer returns only a number, so nothing would be printed
    return result if isinstance(result, int) else 0


def build() -> typer.Typer:
    """The whole command line as one typer app."""
    app = typer.Typer(cls=LazyGroup, rich_markup_mode=None, context_settings=HELP_NAMES, no_args_is_help=True)
    app.callback()(_root)
    return app


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"corral {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True)] = False,
) -> None:
    return None
