"""`corral schema`: prints the JSON Schema of the files that users write, or writes it for editors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from corral.catalog.project_catalog import Catalog, shipped_catalog
from corral.cli.support.exit_codes import ExitCode, Failure, name_file_in_errors
from corral.cli.support.options import Project, examples, new_app
from corral.cli.support.output import show_json
from corral.cli.support.project import find_project
from corral.spec.yaml.catalog_file import project_catalog

app = new_app()


class SchemaKind(StrEnum):
    """The kinds of files that have a schema. The first two belong to a project."""

    BASE = "base"
    CLUSTER = "cluster"
    RUN = "run"
    BUY = "buy"


OF_A_PROJECT = (SchemaKind.BASE, SchemaKind.CLUSTER)
Which = Annotated[
    SchemaKind | None,
    typer.Argument(metavar="KIND", help="base, cluster, run or buy (default: base and cluster, with --out)."),
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Write KIND.schema.json to DIR instead of stdout.")
]


@app.command(epilog=examples("corral schema cluster", "corral schema --out stacks"))
def schema(stack: Which = None, out: Out = None, project: Project = None) -> None:
    """Print the JSON Schema of a stack file, run file or purchase file.

    In a project, the schema includes the instance types of its catalog.toml. To use it in an editor with a YAML
    language server, start the stack file with this line:

    \b
    # yaml-language-server: $schema=../cluster.schema.json
    """
    chosen = OF_A_PROJECT if stack is None else (stack,)
    if out is not None:
        for one in write_schemas(out, _catalog(project), chosen):
            typer.echo(f"wrote {one}")
    elif stack is None:
        raise Failure(
            "give one of base, cluster, run and buy, or write base and cluster with --out DIR", ExitCode.WRONG_INPUT
        )
    else:
        show_json(_schema(stack, _catalog(project)))


def schema_file(directory: Path, stack: SchemaKind) -> Path:
    """The path of a schema in the directory."""
    return directory / f"{stack}.schema.json"


def write_schemas(directory: Path, catalog: Catalog, chosen: tuple[SchemaKind, ...] = OF_A_PROJECT) -> tuple[Path, ...]:
    """Writes the schemas to the directory, which it creates if missing. Returns their paths."""
    written = []
    with name_file_in_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
        for stack in chosen:
            file = schema_file(directory, stack)
            file.write_text(json.dumps(_schema(stack, catalog), indent=2, ensure_ascii=False) + "\n")
            written.append(file)
    return tuple(written)


def _catalog(chosen: Path | None) -> Catalog:
    """The catalog of the project; outside of one, the shipped catalog."""
    try:
        project = find_project(chosen)
    except Failure:
        if chosen is not None:
            raise
        return shipped_catalog()
    return project_catalog(project)


def _schema(stack: SchemaKind, catalog: Catalog) -> Mapping[str, Any]:
    from corral.spec.schema import buy_schema, json_schema, run_schema

    if stack is SchemaKind.RUN:
        return run_schema()
    if stack is SchemaKind.BUY:
        return buy_schema()
    return json_schema("corral-base" if stack is SchemaKind.BASE else "corral-cluster", catalog)
