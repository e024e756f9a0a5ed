"""`corral schema`: the JSON Schema of the files that users write, on stdout or as files for editors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from corral.catalog.project import Catalogue, project_catalogue, shipped_catalogue
from corral.cli.failure import ExitCode, Failure, at
from corral.cli.options import Project, examples, new_app
from corral.cli.project import find_project
from corral.cli.screen import show_json

app = new_app()


class Stack(StrEnum):
    """Whose file: the words of the command line. The first two are a project's."""

    BASE = "base"
    CLUSTER = "cluster"
    RUN = "run"
    BUY = "buy"


OF_A_PROJECT = (Stack.BASE, Stack.CLUSTER)
Which = Annotated[
    Stack | None,
    typer.Argument(metavar="[base|cluster|run|buy]", help="Only this one; else base and cluster, into --out."),
]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write base.schema.json and the like there.")]


@app.command(epilog=examples("corral schema cluster", "corral schema --out stacks"))
def schema(stack: Which = None, out: Out = None, project: Project = None) -> None:
    """Print the JSON Schema of stacks/base/Pulumi.NAME.yaml, of stacks/cluster/Pulumi.NAME.yaml, of a run file,
    or of a file of hardware to buy.

    In a project it knows the instance types of the project's own catalogue.toml as well.
    Editors with a YAML language server take it by this first line of a stack's file:
    # yaml-language-server: $schema=../cluster.schema.json
    """
    chosen = OF_A_PROJECT if stack is None else (stack,)
    if out is not None:
        for one in write_schemas(out, _catalogue(project), chosen):
            typer.echo(f"wrote {one}")
    elif stack is None:
        raise Failure(
            "name one of base, cluster, run and buy, or write the first two with --out DIR", ExitCode.WRONG_INPUT
        )
    else:
        show_json(_schema(stack, _catalogue(project)))


def head_line(schema: str) -> str:
    """The first line of a YAML file by which editors take its schema from this path, seen from the file."""
    return f"# yaml-language-server: $schema={schema}"


def schema_file(directory: Path, stack: Stack) -> Path:
    """Where the schema is written."""
    return directory / f"{stack}.schema.json"


def write_schemas(directory: Path, catalogue: Catalogue, chosen: tuple[Stack, ...] = OF_A_PROJECT) -> tuple[Path, ...]:
    """The files that were written into the directory, which is made if need be."""
    written = []
    with at(directory):
        directory.mkdir(parents=True, exist_ok=True)
        for stack in chosen:
            file = schema_file(directory, stack)
            file.write_text(json.dumps(_schema(stack, catalogue), indent=2, ensure_ascii=False) + "\n")
            written.append(file)
    return tuple(written)


def _catalogue(chosen: Path | None) -> Catalogue:
    """The catalogue of the project that is meant; where there is none, the shipped one."""
    try:
        project = find_project(chosen)
    except Failure:
        if chosen is not None:
            raise
        return shipped_catalogue()
    return project_catalogue(project)


def _schema(stack: Stack, catalogue: Catalogue) -> Mapping[str, Any]:
    from corral.spec.schema import buy_schema, json_schema, run_schema

    if stack is Stack.RUN:
        return run_schema()
    if stack is Stack.BUY:
        return buy_schema()
    return json_schema("corral-base" if stack is Stack.BASE else "corral-cluster", catalogue)
