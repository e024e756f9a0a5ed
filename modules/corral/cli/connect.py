"""`corral connect`: a shell on the head, or one command there. No port is open for it, and no key is needed."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from corral.box import control
from corral.box.one_user import as_people
from corral.box.vpc.network import MachineError, Vpc
from corral.cli.account import box_state
from corral.cli.failure import ExitCode, Failure
from corral.cli.heads import find_head
from corral.cli.options import BoxDirectory, Environment, InBox, Project, examples, new_app

app = new_app()
Command = Annotated[
    list[str] | None,
    typer.Argument(help="What to run on the head, after two dashes; nothing: a shell.", show_default=False),
]

# What enters a machine would name itself where the program is missing there.
_RUN = """command -v "$1" >/dev/null 2>&1 || [ -e "$1" ] || {
    echo "corral: the head has no program $1" >&2
    exit 127
}
exec "$@"
"""


@app.command(epilog=examples("corral connect dev", "corral connect dev --box -- sinfo"))
def connect(
    env: Environment,
    command: Command = None,
    project: Project = None,
    box: InBox = False,
    box_dir: BoxDirectory = None,
) -> None:
    """Open a shell on the head, or run a command there.

    On AWS this is Session Manager's: the AWS CLI and its session-manager-plugin must be installed (`corral doctor`).
    """
    seen, head = find_head(env, project, in_box=box, box_directory=box_dir)
    if place := _means_box(box_dir):
        raise typer.Exit(_enter_machine(head.id, command or [], place))
    _start_session(head.id, seen.region, command or [])


def _means_box(box_dir: Path | None) -> Path | None:
    """The state directory of the box that the AWS settings of this process point at; None for AWS itself."""
    endpoint, where = os.environ.get("AWS_ENDPOINT_URL"), box_state(box_dir)
    return where if endpoint and endpoint == control.status(where).url else None


def _enter_machine(instance_id: str, command: list[str], where: Path) -> int:
    """The exit code of the command on a machine of the box."""
    place = control.machines(where).get(instance_id)
    if place is None:
        reason = control.status(where).machines or "it has not booted yet, or has ended"
        raise Failure(f"the head {instance_id} is no machine: {reason}", ExitCode.FAILED)
    vpc = Vpc(directory=place)
    try:
        entered = as_people(vpc, instance_id, ["sh", "-c", _RUN, "corral", *command] if command else _shell())
        return vpc.attach(instance_id, entered, TERM=os.environ.get("TERM", "dumb"))
    except MachineError as error:
        raise Failure(str(error), ExitCode.FAILED) from None


def _shell() -> list[str]:
    """A login shell; `script` gives it a terminal of its own where there is one outside."""
    return ["script", "-qfec", "bash -l", "/dev/null"] if sys.stdin.isatty() else ["bash", "-l"]


def _start_session(instance_id: str, region: str, command: list[str]) -> None:
    """Becomes the AWS CLI's session."""
    missing = [program for program in ("aws", "session-manager-plugin") if not shutil.which(program)]
    if missing:
        raise Failure(f"{' and '.join(missing)} not found - `corral doctor` says how to install it", ExitCode.FAILED)
    session = ["aws", "ssm", "start-session", "--region", region, "--target", instance_id]
    if command:
        document = ["--document-name", "AWS-StartInteractiveCommand"]
        session += [*document, "--parameters", json.dumps({"command": [shlex.join(command)]})]
    os.execvp("aws", session)
