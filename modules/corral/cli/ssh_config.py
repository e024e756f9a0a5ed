"""`corral ssh-config`: how `ssh` gets to the head, which has no public address and no open port."""

from __future__ import annotations

import typer

from corral.cli.account import mean_account
from corral.cli.failure import ExitCode, Failure
from corral.cli.options import BoxDirectory, Environment, InBox, Project, examples, new_app
from corral.cli.project import find_environment
from corral.forecast.catalogue import catalogue_prices
from corral.inventory.account import open_session
from corral.inventory.status import read_status
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
    mean_account(in_box=box, box_directory=box_dir)
    region = spec.base.region
    prices = catalogue_prices(region, spec.catalogue)
    found = read_status(open_session(region), spec.cluster.name, spec.base.name, prices)
    if found.head is None:
        raise Failure(f"{env} has no head now - bring it up: corral up {env}", ExitCode.FAILED)
    user = plan_image(spec.cluster.image, None).default_user
    typer.echo(entry(spec.cluster.name, user, found.head.id, region), nl=False)
