"""`corral ssh-config`: how `ssh` gets to the head, which has no public address and no open port."""

from __future__ import annotations

import typer

from corral.cli.heads import find_head
from corral.cli.options import BoxDirectory, Environment, InBox, Project, examples, new_app
from corral.cli.project import find_environment
from corral.plan.cluster import plan_image
from corral.render.ssh import ssh_config as entry
from corral.spec.files import read_environment

app = new_app()


@app.command(epilog=examples("corral ssh-config dev >> ~/.ssh/config", "ssh dev-head"))
def ssh_config(env: Environment, project: Project = None, box: InBox = False, box_dir: BoxDirectory = None) -> None:
    """Print an entry for ~/.ssh/config: `ssh ENV-head` then goes through Session Manager.

    It names the head of this moment: print it anew after a head was replaced. Your key must be in the spec's
    access.ssh_keys; the AWS CLI and its session-manager-plugin must be installed (`corral doctor`).
    """
    spec = read_environment(find_environment(project, env), env)
    _, head = find_head(env, project, in_box=box, box_directory=box_dir)
    user = plan_image(spec.cluster.image, None).default_user
    typer.echo(entry(spec.cluster.name, user, head.id, spec.base.region), nl=False)
