"""`corral ssh-config`: prints the ssh configuration for the head, which has no public address and no open port."""

from __future__ import annotations

from typing import Annotated

import typer

from corral.catalog.loader.suggestions import suggestion
from corral.cli.support.exit_codes import ExitCode, Failure
from corral.cli.support.head_lookup import find_head
from corral.cli.support.options import BoxDirectory, Environment, InBox, Project, examples, new_app
from corral.cli.support.project import find_environment
from corral.plan.cluster import plan_image
from corral.render.access import head_ssh_config
from corral.spec.yaml.stack_files import read_environment

app = new_app()
User = Annotated[
    str | None, typer.Option("--user", metavar="NAME", help="Person in access.users (default: the image's user).")
]


@app.command(
    epilog=examples("corral ssh-config dev >> ~/.ssh/config", "corral ssh-config dev --user ada", "ssh dev-head")
)
def ssh_config(
    env: Environment, user: User = None, project: Project = None, box: InBox = False, box_dir: BoxDirectory = None
) -> None:
    """Print an ~/.ssh/config entry for the head.

    `ssh ENV-head` then connects through Session Manager. The entry names the current head: print it again after the
    head is replaced. Requires your key in access.ssh_keys of the spec, or in access.users with --user, and the AWS CLI
    with its session-manager-plugin (see `corral doctor`).
    """
    spec = read_environment(find_environment(project, env), env)
    people = spec.cluster.access.users
    if user and user not in people:
        hint = suggestion(user, people) if people else "declare them there"
        raise Failure(f"access.users of {env} has no {user!r} - {hint}", ExitCode.WRONG_INPUT)
    _, head = find_head(env, project, in_box=box, box_directory=box_dir)
    login = user or plan_image(spec.cluster.image, None).default_user
    typer.echo(head_ssh_config(spec.cluster.name, login, head.id, spec.base.region), nl=False)
