"""`corral new`: both Pulumi projects with the environment `dev`, in a directory of the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from shutil import copy2, copytree, ignore_patterns, rmtree
from typing import Annotated

import typer

from corral.cli import sentences
from corral.cli.failure import ExitCode, Failure, at
from corral.cli.options import examples, new_app
from corral.cli.schema import head_line, write_schemas

app = new_app()
Target = Annotated[Path, typer.Argument(metavar="DIR", help="Where stacks/ is made; DIR may be there already.")]


@app.command(epilog=examples("corral new my-cluster"))
def new(directory: Target) -> None:
    """Write both Pulumi projects with the environment `dev` below DIR/stacks, to edit and to keep in git."""
    stacks = directory / "stacks"
    if stacks.exists():
        raise Failure(f"{stacks} is there already - nothing was written", ExitCode.REFUSED)
    with as_file(files("corral").joinpath("projects")) as shipped, _undone(stacks):
        copytree(shipped, stacks, ignore=ignore_patterns("__pycache__", "*.pyc"), copy_function=_copy)
        _name_schemas(stacks)
    typer.echo(f"wrote {stacks}; next: cd {directory}, edit stacks/*/Pulumi.dev.yaml, corral plan dev")


def _name_schemas(stacks: Path) -> None:
    """Writes the JSON Schemas beside the projects, and into each stack's file the line by which an editor takes its."""
    for schema in write_schemas(stacks):
        project = schema.name.partition(".")[0]
        for file in sorted((stacks / project).glob("Pulumi.?*.yaml")):
            with at(file):
                file.write_text(f"{head_line(f'../{schema.name}')}\n{file.read_text()}")


def _copy(source: str, target: str) -> None:
    """Copies a file. The first one that fails ends it: shutil would try the others and then list them all."""
    try:
        copy2(source, target)
    except OSError as error:
        named = OSError(error.errno, error.strerror, target)
        raise Failure(sentences.of(named, ()) or str(error)) from None


@contextmanager
def _undone(made: Path) -> Iterator[None]:
    """A block that leaves nothing there when it fails: the next attempt would be refused for what is left."""
    try:
        yield
    except BaseException:
        rmtree(made, ignore_errors=True)
        raise
