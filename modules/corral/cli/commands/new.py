"""`corral new`: writes both Pulumi projects with one environment, or adds an environment to existing projects."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path
from shutil import copy2, copytree, ignore_patterns, rmtree
from typing import Annotated, Any

import typer

from corral.catalog.loader.suggestions import suggestion
from corral.catalog.project_catalog import Catalog
from corral.cli.commands.schema import OF_A_PROJECT, SchemaKind, schema_file, write_schemas
from corral.cli.support import system_error_messages
from corral.cli.support.exit_codes import PREFIX, ExitCode, Failure, name_file_in_errors
from corral.cli.support.options import examples, new_app
from corral.model.pulumi_files import stack_names
from corral.spec.yaml.catalog_file import project_catalog
from corral.spec.yaml.scaffold import (
    EnvironmentTemplate,
    Scaffold,
    ScaffoldOptions,
    option_errors,
    read_template,
    scaffold,
)

app = new_app()
Target = Annotated[Path, typer.Argument(metavar="DIR", help="Directory in which to create stacks/.")]
Like = Annotated[
    str | None, typer.Option("--like", metavar="SHIPPED", help="Template: dev, train or mixed (default: dev).")
]
Name = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="Name of the environment (default: the template's).")
]
Region = Annotated[str | None, typer.Option("--region", metavar="REGION", help="AWS region (default: the template's).")]
Type = Annotated[
    str | None,
    typer.Option("--instance-type", metavar="TYPE", help="Instance type of the first queue (default: the template's)."),
]
MaxNodes = Annotated[
    int | None,
    typer.Option("--max-nodes", metavar="N", help="Maximum nodes of the first queue (default: the template's)."),
]
Bucket = Annotated[
    str | None,
    typer.Option("--bucket", metavar="S3URL", help="Bucket with your data: s3://bucket or s3://bucket/prefix."),
]
Notify = Annotated[str | None, typer.Option("--notify", metavar="EMAIL", help="Email address for budget alerts.")]
NoPrompts = Annotated[bool, typer.Option("--yes", "-y", help="Skip all prompts.")]
# Environments, and schemas: these are written for the user's own catalog.
IGNORED = ignore_patterns("__pycache__", "*.pyc", "Pulumi.?*.yaml", "*.schema.json")


@app.command(
    epilog=examples(
        "corral new my-cluster",
        "corral new h100 --like train --name run1 --region us-west-2 --max-nodes 8",
        "corral new . --name run2",
    )
)
def new(
    directory: Target,
    like: Like = None,
    name: Name = None,
    region: Region = None,
    instance_type: Type = None,
    max_nodes: MaxNodes = None,
    bucket: Bucket = None,
    notify: Notify = None,
    yes: NoPrompts = False,
) -> None:
    """Create the Pulumi projects with one environment.

    Writes to DIR/stacks, for you to edit and commit. If both projects exist, adds the environment's two files and
    changes nothing else. On a terminal and without options, prompts for each setting; Enter accepts the default.
    """
    stacks = directory / "stacks"
    is_new = not stacks.exists()
    if not is_new:
        _require_project(stacks)
    options = ScaffoldOptions(
        name=name, region=region, instance_type=instance_type, max_nodes=max_nodes, bucket=bucket, notify=notify
    )
    catalog = project_catalog(directory)
    with as_file(files("corral").joinpath("projects")) as projects:
        template = _checked(projects, like, options, catalog)
        _require_free(stacks, options.name or template.name)
        if options == ScaffoldOptions() and like is None and not yes and sys.stdin.isatty() and sys.stdout.isatty():
            options = _prompt_all(template, catalog)
            _require_free(stacks, options.name or template.name)
        made = scaffold(template, options, catalog)
        with _removed_on_failure(stacks, made.name, is_new=is_new):
            if is_new:
                copytree(projects, stacks, ignore=IGNORED, copy_function=_copy)
            _write(stacks, made, catalog)
    _print_result(directory, made)


def _require_project(stacks: Path) -> None:
    """Raises Failure unless both projects exist, so that an environment can be added."""
    if missing := [one for one in OF_A_PROJECT if not (stacks / one / "Pulumi.yaml").is_file()]:
        raise Failure(
            f"{stacks} exists without {' and '.join(f'{one}/Pulumi.yaml' for one in missing)}: nothing was"
            " written - choose another directory",
            ExitCode.REFUSED,
        )


def _require_free(stacks: Path, name: str) -> None:
    """Raises Failure if a base or a cluster of this name exists."""
    taken = [stacks / one / f"Pulumi.{name}.yaml" for one in OF_A_PROJECT if name in stack_names(stacks / one)]
    if taken:
        files = f"{' and '.join(map(str, taken))} already {'exist' if len(taken) > 1 else 'exists'}"
        hint = "`--name NAME` adds an environment with another name"
        raise Failure(f"{files}: nothing was written - {hint}", ExitCode.REFUSED)


def _checked(projects: Path, like: str | None, options: ScaffoldOptions, catalog: Catalog) -> EnvironmentTemplate:
    """The template to use. Raises Failure with every error in the options."""
    known = sorted(file.name.split(".")[1] for file in (projects / "cluster").glob("Pulumi.?*.yaml"))
    chosen = "dev" if like is None else like
    wrong = () if chosen in known else (f"--like: unknown template {chosen!r} - {suggestion(chosen, known)}",)
    template = None if wrong else _read_template(projects, chosen, catalog)
    wrong = (*wrong, *map(str, option_errors(options, template, catalog)))
    if wrong or template is None:
        raise Failure(f"\n{PREFIX}".join(wrong), ExitCode.WRONG_INPUT)
    return template


def _read_template(projects: Path, name: str, catalog: Catalog) -> EnvironmentTemplate:
    base, cluster = (
        (projects / kind / f"Pulumi.{name}.yaml").read_text(encoding="utf-8") for kind in ("base", "cluster")
    )
    return read_template(name, base, cluster, catalog)


def _prompt_all(template: EnvironmentTemplate, catalog: Catalog) -> ScaffoldOptions:
    """The user's answers. Repeats each question until its answer is valid."""
    defaults = {
        "name": ("name", template.name),
        "region": ("region", template.base.region),
        "instance_type": (f"instance type of queue {template.queue.name}", template.queue.instance_type),
        "max_nodes": ("maximum nodes", str(template.queue.nodes.max)),
        "bucket": ("data", template.bucket or ""),
    }
    options = ScaffoldOptions()
    for field, (question, default) in defaults.items():
        if default:
            options = _prompt(options, field, f"{question} [{default}]: ", template, catalog)
    return options


def _prompt(
    options: ScaffoldOptions, field: str, question: str, template: EnvironmentTemplate, catalog: Catalog
) -> ScaffoldOptions:
    while True:
        answer = _line(question)
        if not answer:
            return options
        if field == "max_nodes" and not answer.isdecimal():
            typer.echo(f"{answer!r} is not a number - write digits")
            continue
        change: dict[str, Any] = {field: int(answer) if field == "max_nodes" else answer}
        answered = replace(options, **change)
        wrong = option_errors(answered, template, catalog)
        if not wrong:
            return answered
        for error in wrong:
            typer.echo(error.text)


def _line(question: str) -> str:
    try:
        return input(question).strip()
    except EOFError:  # Ctrl-D
        typer.echo()
        raise Failure("cancelled: nothing was written", ExitCode.REFUSED) from None


def _write(stacks: Path, made: Scaffold, catalog: Catalog) -> None:
    texts = {SchemaKind.BASE: made.base_text, SchemaKind.CLUSTER: made.cluster_text}
    write_schemas(stacks, catalog, tuple(one for one in OF_A_PROJECT if not schema_file(stacks, one).exists()))
    for stack, text in texts.items():
        file = stacks / stack / f"Pulumi.{made.name}.yaml"
        with name_file_in_errors(file):
            file.write_text(text, encoding="utf-8")


def _print_result(directory: Path, made: Scaffold) -> None:
    for kind in ("base", "cluster"):
        typer.echo(f"wrote {directory / 'stacks' / kind / f'Pulumi.{made.name}.yaml'}")
    for remark in made.remarks:
        typer.echo(f"- {remark}")
    typer.echo(f"next: cd {directory}, edit stacks/*/Pulumi.{made.name}.yaml, corral plan {made.name}")


def _copy(source: str, target: str) -> None:
    """Copies a file. Raises Failure at the first error: shutil would go on and list all errors in the end."""
    try:
        copy2(source, target)
    except OSError as error:
        named = OSError(error.errno, error.strerror, target)
        raise Failure(system_error_messages.message_for(named, ()) or str(error)) from None


@contextmanager
def _removed_on_failure(stacks: Path, name: str, *, is_new: bool) -> Iterator[None]:
    """A block that removes what it wrote if it fails. Otherwise the next attempt would be refused."""
    try:
        yield
    except BaseException:
        if is_new:
            rmtree(stacks, ignore_errors=True)
        for stack in OF_A_PROJECT:
            with suppress(OSError):
                (stacks / stack / f"Pulumi.{name}.yaml").unlink()
        raise
