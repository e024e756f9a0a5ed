"""`corral new`: both Pulumi projects with one environment like a shipped one, in a directory of the user's own; where
both are there already, one environment more.
"""

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

from corral.catalog.names import suggestion
from corral.catalog.project import Catalogue, project_catalogue
from corral.cli import sentences
from corral.cli.failure import MARK, ExitCode, Failure, at
from corral.cli.options import Yes, examples, new_app
from corral.cli.schema import OF_A_PROJECT, Stack, head_line, schema_file, write_schemas
from corral.model.stack_files import stack_names
from corral.spec.scaffold import Scaffold, Shipped, Wanted, mistakes, read_shipped, scaffold

app = new_app()
Target = Annotated[Path, typer.Argument(metavar="DIR", help="Where stacks/ is made; DIR may be there already.")]
Like = Annotated[
    str | None, typer.Option("--like", metavar="SHIPPED", help="Made from dev (the default), train, mixed.")
]
Name = Annotated[str | None, typer.Option("--name", metavar="NAME", help="What it is called; else as the shipped one.")]
Region = Annotated[str | None, typer.Option("--region", metavar="REGION", help="Else that of the shipped one.")]
Type = Annotated[
    str | None,
    typer.Option("--instance-type", metavar="TYPE", help="The machines of the first queue; else as shipped."),
]
MaxNodes = Annotated[int | None, typer.Option("--max-nodes", metavar="N", help="The most nodes of the first queue.")]
Bucket = Annotated[
    str | None, typer.Option("--bucket", metavar="S3URL", help="Your data: s3://bucket or s3://bucket/prefix.")
]
Notify = Annotated[str | None, typer.Option("--notify", metavar="MAIL", help="Who is told of what is spent.")]
# The environments, and the schemas, which are written for the types of the user's own project.
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
    yes: Yes = False,
) -> None:
    """Write both Pulumi projects with one environment below DIR/stacks, to edit and to keep in git.

    Where both are there already, it adds the environment's two files, and touches nothing that exists.
    On a terminal, and without any option, it asks what the environment shall be; Enter takes what is shown.
    """
    stacks = directory / "stacks"
    is_new = not stacks.exists()
    if not is_new:
        _require_project(stacks)
    wanted = Wanted(
        name=name, region=region, instance_type=instance_type, max_nodes=max_nodes, bucket=bucket, notify=notify
    )
    catalogue = project_catalogue(directory)
    with as_file(files("corral").joinpath("projects")) as projects:
        shipped = _checked(projects, like, wanted, catalogue)
        _require_free(stacks, wanted.name or shipped.name)
        if wanted == Wanted() and like is None and not yes and sys.stdin.isatty() and sys.stdout.isatty():
            wanted = _asked(shipped, catalogue)
            _require_free(stacks, wanted.name or shipped.name)
        made = scaffold(shipped, wanted, catalogue)
        with _undone(stacks, made.name, is_new=is_new):
            if is_new:
                copytree(projects, stacks, ignore=IGNORED, copy_function=_copy)
            _write(stacks, made, catalogue)
    _tell(directory, made)


def _require_project(stacks: Path) -> None:
    """Raises Failure unless both projects are there, to which an environment could be added."""
    if missing := [one for one in OF_A_PROJECT if not (stacks / one / "Pulumi.yaml").is_file()]:
        raise Failure(
            f"{stacks} is there already, without {' and '.join(f'{one}/Pulumi.yaml' for one in missing)}: nothing was"
            " written - name another directory",
            ExitCode.REFUSED,
        )


def _require_free(stacks: Path, name: str) -> None:
    """Raises Failure where a base or a cluster has this name already."""
    taken = [stacks / one / f"Pulumi.{name}.yaml" for one in OF_A_PROJECT if name in stack_names(stacks / one)]
    if taken:
        files = f"{' and '.join(map(str, taken))} {'are' if len(taken) > 1 else 'is'} there already"
        hint = "`--name NAME` adds an environment of another name"
        raise Failure(f"{files}: nothing was written - {hint}", ExitCode.REFUSED)


def _checked(projects: Path, like: str | None, wanted: Wanted, catalogue: Catalogue) -> Shipped:
    """The shipped environment that is meant. Raises Failure with all that is wrong with the options."""
    known = sorted(file.name.split(".")[1] for file in (projects / "cluster").glob("Pulumi.?*.yaml"))
    chosen = "dev" if like is None else like
    wrong = () if chosen in known else (f"--like: there is no shipped {chosen!r} - {suggestion(chosen, known)}",)
    shipped = None if wrong else _shipped(projects, chosen, catalogue)
    wrong = (*wrong, *mistakes(wanted, shipped, catalogue))
    if wrong or shipped is None:
        raise Failure(f"\n{MARK}".join(wrong), ExitCode.WRONG_INPUT)
    return shipped


def _shipped(projects: Path, name: str, catalogue: Catalogue) -> Shipped:
    base, cluster = (
        (projects / kind / f"Pulumi.{name}.yaml").read_text(encoding="utf-8") for kind in ("base", "cluster")
    )
    return read_shipped(name, base, cluster, catalogue)


def _asked(shipped: Shipped, catalogue: Catalogue) -> Wanted:
    """What the user answers, each question again until its answer can be used."""
    defaults = {
        "name": ("name", shipped.name),
        "region": ("region", shipped.base.region),
        "instance_type": (f"instance type of queue {shipped.queue.name}", shipped.queue.instance_type),
        "max_nodes": ("nodes at most", str(shipped.queue.nodes.max)),
        "bucket": ("data", shipped.bucket or ""),
    }
    wanted = Wanted()
    for field, (question, default) in defaults.items():
        if default:
            wanted = _ask(wanted, field, f"{question} [{default}]: ", shipped, catalogue)
    return wanted


def _ask(wanted: Wanted, field: str, question: str, shipped: Shipped, catalogue: Catalogue) -> Wanted:
    while True:
        answer = _line(question)
        if not answer:
            return wanted
        if field == "max_nodes" and not answer.isdecimal():
            typer.echo(f"{answer!r} is not a number - write it in digits")
            continue
        change: dict[str, Any] = {field: int(answer) if field == "max_nodes" else answer}
        answered = replace(wanted, **change)
        wrong = mistakes(answered, shipped, catalogue)
        if not wrong:
            return answered
        for sentence in wrong:
            typer.echo(sentence.partition(": ")[2])


def _line(question: str) -> str:
    try:
        return input(question).strip()
    except EOFError:  # Ctrl-D
        typer.echo()
        raise Failure("not all was answered - nothing was written", ExitCode.REFUSED) from None


def _write(stacks: Path, made: Scaffold, catalogue: Catalogue) -> None:
    texts = {Stack.BASE: made.base_text, Stack.CLUSTER: made.cluster_text}
    write_schemas(stacks, catalogue, tuple(one for one in OF_A_PROJECT if not schema_file(stacks, one).exists()))
    for stack, text in texts.items():
        file = stacks / stack / f"Pulumi.{made.name}.yaml"
        with at(file):
            file.write_text(f"{head_line(f'../{schema_file(stacks, stack).name}')}\n{text}", encoding="utf-8")


def _tell(directory: Path, made: Scaffold) -> None:
    for kind in ("base", "cluster"):
        typer.echo(f"wrote {directory / 'stacks' / kind / f'Pulumi.{made.name}.yaml'}")
    for remark in made.remarks:
        typer.echo(f"- {remark}")
    typer.echo(f"next: cd {directory}, edit stacks/*/Pulumi.{made.name}.yaml, corral plan {made.name}")


def _copy(source: str, target: str) -> None:
    """Copies a file. The first one that fails ends it: shutil would try the others and then list them all."""
    try:
        copy2(source, target)
    except OSError as error:
        named = OSError(error.errno, error.strerror, target)
        raise Failure(sentences.of(named, ()) or str(error)) from None


@contextmanager
def _undone(stacks: Path, name: str, *, is_new: bool) -> Iterator[None]:
    """A block that leaves nothing there when it fails: the next attempt would be refused for what is left."""
    try:
        yield
    except BaseException:
        if is_new:
            rmtree(stacks, ignore_errors=True)
        for stack in OF_A_PROJECT:
            with suppress(OSError):
                (stacks / stack / f"Pulumi.{name}.yaml").unlink()
        raise
