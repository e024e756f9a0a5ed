"""`corral connect`: opens a shell on a login node or the head, or runs a command, without an open port or a key."""

from __future__ import annotations

import getpass
import json
import os
import shlex
import shutil
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from corral.box import client, control
from corral.box.machines.single_uid import as_user_command
from corral.box.vpc.virtual_network import MachineError, Vpc
from corral.cli.support.exit_codes import ExitCode, Failure
from corral.cli.support.head_lookup import find_gates
from corral.cli.support.options import BoxDirectory, Environment, InBox, Machine, Project, examples, new_app
from corral.cli.support.remote import is_checked
from corral.cli.support.target_account import targeted_box
from corral.inventory.resources import AwsResource
from corral.inventory.scan import Session, open_session
from corral.plan.iam.head_documents import COMMAND, ROOT_SHELL, RUN_AS_TAG, SHELL, HeadDocument

app = new_app()
Command = Annotated[
    list[str] | None,
    typer.Argument(metavar="COMMAND", help="Command to run, after `--` (default: a shell).", show_default=False),
]
Root = Annotated[
    bool,
    typer.Option("--root", help="Connect as root (default: as the user whom your IAM role or user is tagged with)."),
]

# nsenter would name itself if the machine lacks the program.
_RUN = """command -v "$1" >/dev/null 2>&1 || [ -e "$1" ] || {
    echo "corral: this machine has no program $1" >&2
    exit 127
}
exec "$@"
"""


@app.command(epilog=examples("corral connect dev", "corral connect dev --root", "corral connect dev --box -- sinfo"))
def connect(
    env: Environment,
    command: Command = None,
    root: Root = False,
    to: Machine = None,
    project: Project = None,
    box: InBox = False,
    box_dir: BoxDirectory = None,
) -> None:
    """Open a shell on a login node, or on the head of a cluster without any, or run a command there.

    On AWS this uses Session Manager and needs the AWS CLI and its session-manager-plugin (see `corral doctor`). You are
    the user whom the tag SSMSessionRunAs of your IAM role or user names, or root with --root, which needs the admin's
    policy. The owner of a box is always root.
    """
    summary, gates = find_gates(env, project, to, in_box=box, box_directory=box_dir)
    machine = _own_gate(gates)
    document = ROOT_SHELL if root else SHELL
    parameters = {COMMAND: [shlex.join(command)]} if command else {}
    if not (target := targeted_box(box_dir)):
        _replace_by_session(machine.id, summary.region, document.name, parameters)
    session = open_session(summary.region, quick=True)
    if is_checked(session, target):
        raise typer.Exit(_enter_session(session, machine.id, document, parameters, target.dir))
    raise typer.Exit(_enter_machine(machine.id, command or [], target.dir))


def _own_gate(gates: Mapping[str, AwsResource]) -> AwsResource:
    """The login node of this person, always the same while there are as many: their sessions stay on it."""
    return gates[sorted(gates)[zlib.crc32(getpass.getuser().encode()) % len(gates)]]


def _enter_session(
    session: Session, instance_id: str, document: HeadDocument, parameters: Mapping[str, list[str]], where: Path
) -> int:
    """The exit code of a session that the box's Systems Manager allows, on a machine of the box."""
    from corral.inventory.head_instance import HeadCommandError, start_session

    try:
        started = control.session(where, start_session(session, instance_id, document, parameters))
    except HeadCommandError as error:
        raise Failure(str(error), ExitCode.FAILED) from None
    if not started["user"]:
        hint = f"tag your role: aws iam tag-role --role-name NAME --tags Key={RUN_AS_TAG},Value=USER"
        raise Failure(f"your role names no user of the machine - {hint}", ExitCode.FAILED)
    return _enter_machine(instance_id, ["sh", "-c", started["command"]], where, started["user"])


def _enter_machine(instance_id: str, command: list[str], where: Path, user: str = "root") -> int:
    """The exit code of the command on a machine of the box."""
    vpc_directory = control.machines(where).get(instance_id)
    if vpc_directory is None:
        reason = client.status(where).no_machines_reason or "it has not booted yet, or has terminated"
        raise Failure(f"{instance_id} does not run as a machine: {reason}", ExitCode.FAILED)
    vpc = Vpc(directory=vpc_directory)
    try:
        if user != "root" and vpc.run(instance_id, ("getent", "passwd", user)).returncode:
            raise Failure(f"the machine has no user {user}", ExitCode.FAILED)
        program = ["sh", "-c", _RUN, "corral", *command] if command else _shell()
        entered = as_user_command(vpc, instance_id, program, user)
        return vpc.attach(instance_id, entered, TERM=os.environ.get("TERM", "dumb"))
    except MachineError as error:
        raise Failure(str(error), ExitCode.FAILED) from None


def _shell() -> list[str]:
    """A login shell; `script` gives it its own terminal if stdin is one."""
    return ["script", "-qfec", "bash -l", "/dev/null"] if sys.stdin.isatty() else ["bash", "-l"]


def _replace_by_session(instance_id: str, region: str, document: str, parameters: Mapping[str, list[str]]) -> NoReturn:
    """Replaces this process by a session of the AWS CLI."""
    missing = [program for program in ("aws", "session-manager-plugin") if not shutil.which(program)]
    if missing:
        raise Failure(f"{' and '.join(missing)} not found - `corral doctor` shows how to install it", ExitCode.FAILED)
    session = ["aws", "ssm", "start-session", "--region", region, "--target", instance_id, "--document-name", document]
    if parameters:
        session += ["--parameters", json.dumps(parameters)]
    os.execvp("aws", session)
