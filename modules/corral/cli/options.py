"""The arguments and options that several commands share, each written once, and how every command's app begins."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corral.cli.failure import ExitCode, Failure
from corral.cli.project import environment_names

_LONGEST_S = 3650 * 86_400  # nothing is older than ten years, and there is no time before the year 1
HELP_NAMES = {"help_option_names": ["-h", "--help"]}


def seconds_of(option: str, text: str) -> float:
    """The seconds of a duration like 30s, 2m, 12h or 1d, ten years at most. Raises Failure."""
    from corral.spec.durations import parse_duration

    try:
        return min(parse_duration(text).total_seconds(), _LONGEST_S)
    except ValueError:
        raise Failure(f"{option} {text}: that is no time - 30s, 2m, 12h or 1d is", ExitCode.WRONG_INPUT) from None


def new_app(help: str | None = None) -> typer.Typer:
    """An empty app for one command or one group of commands, with plain help pages."""
    return typer.Typer(
        help=help, add_completion=False, rich_markup_mode=None, context_settings=HELP_NAMES, no_args_is_help=True
    )


def examples(*lines: str) -> str:
    """The end of a help page that shows these command lines as they are."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def complete_environment(incomplete: str) -> list[str]:
    """The names of the project's environments that begin like this, for the shell."""
    return [name for name in environment_names() if name.startswith(incomplete)]


Environment = Annotated[
    str, typer.Argument(metavar="ENV", help="The environment: a cluster stack.", autocompletion=complete_environment)
]
AnyEnvironment = Annotated[
    str | None,
    typer.Argument(metavar="[ENV]", help="Only this environment.", autocompletion=complete_environment),
]
Project = Annotated[
    Path | None,
    typer.Option("--project", metavar="DIR", help="The directory that holds stacks/; else found from here upwards."),
]
InBox = Annotated[bool, typer.Option("--box", help="Mean the AWS on this machine, not a real account.")]
BoxDirectory = Annotated[
    Path | None,
    typer.Option("--box-dir", metavar="DIR", help="The box's state directory; else CORRAL_BOX_DIR, else one per user."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead (docs/cli.md has its shape).")]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write it as one HTML page to this file as well.")
]
Since = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Only what is no older: 30m, 2h, 1d (default: all).")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
