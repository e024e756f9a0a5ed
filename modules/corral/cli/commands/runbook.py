"""`corral runbook`: prints the page of an alert, for whoever is paged and has no checkout at hand."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated

import typer

from corral.catalog.loader.suggestions import suggestion
from corral.cli.support.exit_codes import ExitCode, Failure
from corral.cli.support.options import examples, new_app

app = new_app()
Name = Annotated[str, typer.Argument(metavar="ALERT", help="Name of the alert, as its message has it.")]


@app.command(epilog=examples("corral runbook CorralNodeSlow"))
def runbook(alert: Name) -> None:
    """Print the runbook of an alert: what it means, why it matters, where to look and what to do.

    The same pages are in docs/runbooks, and docs/monitoring.md lists the alerts.
    """
    pages = {page.name.removesuffix(".md"): page for page in files("corral").joinpath("runbooks").iterdir()}
    if alert not in pages:
        raise Failure(f"{alert}: no such runbook - {suggestion(alert, sorted(pages))}", ExitCode.WRONG_INPUT)
    typer.echo(pages[alert].read_text(encoding="utf-8"), nl=False)
