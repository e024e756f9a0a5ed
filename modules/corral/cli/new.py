"""`corral new`: both Pulumi projects with the environment `dev`, in a directory of the user's own."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Annotated

import typer

from corral.cli.failure import ExitCode, Failure
from corral.cli.options import examples, new_app

app = new_app()
Target = Annotated[Path, typer.Argument(metavar="DIR", help="Where stacks/ is made; DIR may be there already.")]


@app.command(epilog=examples("corral new my-cluster"))
def new(directory: Target) -> None:
    """Write both Pulumi projects with the environment `dev` below DIR/stacks, to edit and to keep in git."""
    stacks = directory / "stacks"
    if stacks.exists():
        raise Failure(f"{stacks} is there already - nothing was written", ExitCode.REFUSED)
    with as_file(files("corral").joinpath("projects")) as shipped:
        copytree(shipped, stacks, ignore=ignore_patterns("__pycache__", "*.pyc"))
    typer.echo(f"wrote {stacks}; next: cd {directory}, edit stacks/*/Pulumi.dev.yaml, corral plan dev")
