"""`corral ssh-config`: prints the ssh configuration for login nodes or the head, which have no address outside."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from corral.catalog.loader.suggestions import suggestion
from corral.cli.support.exit_codes import ExitCode, Failure
from corral.cli.support.head_lookup import find_gates
from corral.cli.support.options import BoxDirectory, Environment, InBox, Machine, Project, examples, new_app
from corral.cli.support.project import find_environment
from corral.cli.support.target_account import targeted_box
from corral.engine.pulumi.projects import box_image
from corral.plan.cluster import plan_image
from corral.render.access import session_proxy, ssh_config_entry
from corral.spec.yaml.stack_files import read_environment

# A machine has bash, and perhaps nothing like netcat. Whichever side ends first ends the other: ssh waits for the end
# of its command's output, and a refused ssh leaves its sshd waiting for two minutes.
TO_SSHD = "exec 3<>/dev/tcp/127.0.0.1/22; cat <&3 & cat <&0 >&3 & wait -n; kill $(jobs -pr) 2>/dev/null"
app = new_app()
User = Annotated[
    str | None,
    typer.Option("--user", metavar="NAME", help="Person in access (default: the image's user)."),
]


@app.command(
    epilog=examples("corral ssh-config dev >> ~/.ssh/config", "corral ssh-config dev --user ada", "ssh dev-head")
)
def ssh_config(
    env: Environment,
    user: User = None,
    to: Machine = None,
    project: Project = None,
    box: InBox = False,
    box_dir: BoxDirectory = None,
) -> None:
    """Print an ~/.ssh/config entry for each login node, or for the head of a cluster without any.

    `ssh ENV-login-1` or `ssh ENV-head` then connects through Session Manager. An entry names the current
    instance: print it again after that is replaced. Requires your key in access.ssh_keys of the spec, or in
    access.users with --user, and the AWS CLI with its session-manager-plugin (see `corral doctor`). The box needs
    neither.
    """
    directory = find_environment(project, env)
    spec = read_environment(directory, env)
    people = spec.cluster.access.users
    if user and user not in people and not spec.cluster.access.directory:
        hint = suggestion(user, people) if people else "declare them there"
        raise Failure(f"access.users of {env} has no {user!r} - {hint}", ExitCode.WRONG_INPUT)
    _, gates = find_gates(env, project, to, in_box=box, box_directory=box_dir)
    target = targeted_box(box_dir)
    profile = box_image(os.environ) if target else None
    login = user or plan_image(spec.cluster.image, profile).default_user
    for name, machine in gates.items():
        proxy = _box_proxy(env, name, directory.absolute(), target.dir) if target else session_proxy(spec.base.region)
        typer.echo(ssh_config_entry(f"{spec.cluster.name}-{name}", login, machine.id, proxy), nl=False)


def _box_proxy(env: str, name: str, project: Path, box_dir: Path) -> str:
    """The command that connects ssh to the sshd of a machine, as Session Manager's plugin would on AWS."""
    chosen = ("--to", name, "--project", str(project), "--box-dir", str(box_dir))
    command = shlex.join([sys.executable, "-m", "corral.cli", "connect", env, *chosen, "--", "bash", "-c", TO_SSHD])
    return command.replace("%", "%%")  # ssh's own sign of a variable
