"""`corral status`: what is up, until when, and what it costs now, from the account alone."""

from __future__ import annotations

from datetime import UTC, datetime

from corral.cli.account import mean_account
from corral.cli.options import AsJson, BoxDirectory, Environment, InBox, Project, examples, new_app
from corral.cli.project import find_environment
from corral.cli.screen import show, show_json, waiting
from corral.forecast.catalogue import catalogue_prices
from corral.inventory.account import open_session
from corral.inventory.status import read_status
from corral.report.status import status_document, status_view
from corral.spec.files import read_environment

app = new_app()


@app.command(epilog=examples("corral status dev", "corral status dev --box", "corral status dev --json"))
def status(
    env: Environment,
    project: Project = None,
    box: InBox = False,
    box_dir: BoxDirectory = None,
    json: AsJson = False,
) -> None:
    """Show what is up, how long it will live, and what it costs now. The account is only read.

    An environment that is not up is no failure: it is said, and the exit code is 0.
    """
    spec = read_environment(find_environment(project, env), env)
    mean_account(in_box=box, box_directory=box_dir)
    region = spec.base.region
    with waiting(f"reading what is there in {region}"):
        prices = catalogue_prices(region, spec.catalogue)
        found = read_status(open_session(region), spec.cluster.name, spec.base.name, prices)
    if json:
        show_json(status_document(found))
    else:
        show(status_view(found, datetime.now(UTC)))
