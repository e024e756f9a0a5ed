"""Arguments and options that several commands share, and the typer app that each command starts from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from corral.cli.support.exit_codes import ExitCode, Failure
from corral.cli.support.project import environment_names

_LONGEST_S = 3650 * 86_400  # nothing is older than ten years, and there is no time before the year 1
_STACK_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")  # Pulumi docs, "Stacks", "Create a stack"
HELP_NAMES = {"help_option_names": ["-h", "--help"]}


def seconds_of(option: str, text: str) -> float:
    """The seconds of a duration like 30s, 2m, 12h or 1d, ten years at most. Raises Failure."""
    from corral.spec.models.durations import parse_duration

    try:
        return min(parse_duration(text).total_seconds(), _LONGEST_S)
    except ValueError:
        raise Failure(f"{option} {text}: not a duration - write 30s, 2m, 12h or 1d", ExitCode.WRONG_INPUT) from None


class Command(TyperCommand):
    """A command whose usage line shows a required argument as ENV; typer's shows {ENV}."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the usage line after the command."""
        return [word.replace("{", "").replace("}", "") for word in super().collect_usage_pieces(ctx)]


class App(typer.Typer):
    """A typer app of such commands."""

    def command(self, name: str | None = None, **attributes: Any) -> Any:
        """The decorator of a command."""
        return super().command(name, cls=Command, **attributes)


def new_app(help: str | None = None, *, epilog: str | None = None, group: type[TyperGroup] = TyperGroup) -> typer.Typer:
    """An empty app for one command or one group of commands, with plain help pages."""
    return App(
        help=help,
        epilog=epilog,
        cls=group,
        add_completion=False,
        rich_markup_mode=None,
        context_settings=HELP_NAMES,
        no_args_is_help=True,
    )


def examples(*lines: str) -> str:
    """The epilog of a help page: these command lines, verbatim."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def complete_environment(incomplete: str) -> list[str]:
    """The project's environments that start with this text, for shell completion.

    Only names that Pulumi accepts: a shell puts them into a command line, and the project may be somebody else's.
    """
    return [name for name in environment_names() if name.startswith(incomplete) and _STACK_NAME.fullmatch(name)]


Environment = Annotated[
    str, typer.Argument(metavar="ENV", help="Environment (a cluster stack).", autocompletion=complete_environment)
]
AnyEnvironment = Annotated[
    str | None,
    typer.Argument(
        metavar="ENV", help="Environment (default: all of the project).", autocompletion=complete_environment
    ),
]
Project = Annotated[
    Path | None,
    typer.Option(
        "--project", metavar="DIR", help="Directory that holds stacks/ (default: the nearest, from here upwards)."
    ),
]
InBox = Annotated[bool, typer.Option("--box", help="Use the local AWS emulator instead of a real account.")]
Machine = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="NAME",
        help="Machine: head, or a login node such as login-2 (default: a login node, or the head without any).",
    ),
]
BoxDirectory = Annotated[
    Path | None,
    typer.Option(
        "--box-dir", metavar="DIR", help="State directory of the box (default: $CORRAL_BOX_DIR, or one per user)."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document (docs/cli.md describes it).")]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Also write the result to FILE as one HTML page.")
]
Since = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Show only the last 30m, 2h or 1d (default: all).")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt.")]
