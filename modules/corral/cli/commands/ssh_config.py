"""`corral ssh-config`: prints the ssh configuration for the head, which has no public address and no open port."""

from __future__ import annotations

import typer

from corral.cli.support.head_lookup import find_head
from corral.cli.support.options import BoxDirectory, Environment, InBox, Project, examples, new_app
from corral.cli.support.project import find_environment
from corral.plan.cluster import plan_image
from corral.render.authorized_keys import head_ssh_config
from corral.spec.yaml.stack_files import read_environment

app = new_app()


@app.command(epilog=examples("corral ssh-config dev >> ~/.ssh/config", "ssh dev-head"))
def ssh_config(env: Environment, project: Project = None, box: InBox = False, box_dir: BoxDirectory = None) -> None:
    """Print an ~/.ssh/config entry for the head.

    `ssh ENV-head` then connects through Session Manager. The entry names the current head: print it again after the
    head is replaced. Requires your key in access.ssh_keys of the spec, and the AWS CLI with its session-manager-plugin
    (see `corral doctor`).
    """
    spec = read_environment(find_environment(project, env), env)
    _, head = find_head(env, project, in_box=box, box_directory=box_dir)
    user = plan_image(spec.cluster.image, None).default_user
    typer.echo(head_ssh_config(spec.cluster.name, user, head.id, spec.base.region), nl=False)
