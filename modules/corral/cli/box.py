"""`corral box ...`: the AWS on this machine. Everything is done by corral.box.control; here it gets its words."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from corral.box import control
from corral.box.directory import StateDirectory
from corral.cli import box_fault, box_quota
from corral.cli.account import box_state
from corral.cli.box_fault import Directory
from corral.cli.failure import ExitCode, Failure, tell
from corral.cli.idle import all_stacks_held
from corral.cli.options import AsJson, Yes, examples, new_app
from corral.cli.project import find_project
from corral.cli.screen import ask, show_json
from corral.engine.binary import find_pulumi
from corral.engine.errors import EngineError
from corral.engine.projects import box_image, sync

app = new_app("AWS on this machine: one daemon per state directory, reachable from this machine only.")
app.add_typer(box_fault.app, name="fault", epilog=box_fault.EXAMPLES)
app.command("quota", epilog=box_quota.EXAMPLES)(box_quota.quota)


WithMachines = Annotated[
    bool,
    typer.Option(
        "--machines/--no-machines",
        help="Whether instances are machines: processes with networks and disks of their own, which boot.",
    ),
]


class Shell(StrEnum):
    """How a shell wants its variables set."""

    POSIX = "posix"
    FISH = "fish"


@app.command(epilog=examples("corral box start", "corral box start --dir /tmp/box1"))
def start(dir: Directory = None, machines: WithMachines = True) -> None:
    """Start the box, or say that it runs. It continues from the state that it saved."""
    _tell(control.start(box_state(dir), machines=machines))


@app.command(epilog=examples("corral box stop"))
def stop(dir: Directory = None) -> None:
    """Stop the box. Its state stays: the next start continues from it."""
    where = box_state(dir)
    stopped = control.stop(where)
    typer.echo(f"the box in {where} has stopped; its state is kept" if stopped else f"no box runs in {where}")


@app.command(epilog=examples("corral box status", "corral box status --json"))
def status(dir: Directory = None, json: AsJson = False) -> None:
    """Say whether the box runs, and where."""
    now = control.status(box_state(dir))
    if json:
        show_json(_document(now))
    else:
        _tell(now)


@app.command(
    epilog=examples('eval "$(corral box env)"', "corral box env --shell fish | source", "corral box env --json")
)
def env(
    dir: Directory = None,
    shell: Annotated[Shell, typer.Option(help="For which shell the lines are written.")] = Shell.POSIX,
    json: AsJson = False,
) -> None:
    """Print what points pulumi, aws and boto3 at the running box, for a shell to evaluate."""
    variables = _ready_for_pulumi(control.environment(box_state(dir)))
    if json:
        show_json(dict(variables))
    else:
        typer.echo("\n".join(_settings(variables, shell)))


@app.command(epilog=examples("corral box reset --yes"))
def reset(dir: Directory = None, yes: Yes = False) -> None:
    """Empty the box: its cloud, and the Pulumi states that described it."""
    where = box_state(dir)
    if not (yes or ask(f"Everything in the box in {where} will be gone. Empty it?")):
        raise Failure(f"the box in {where} was left as it is - add --yes to empty it", ExitCode.REFUSED)
    try:
        with all_stacks_held(StateDirectory(where).pulumi, tell):
            control.reset(where)
    except EngineError as error:
        sentence = f"the box in {where} was left as it is: {error.sentence} - wait until it has ended, or end it"
        raise Failure(sentence, ExitCode.REFUSED) from None
    typer.echo(f"the box in {where} is empty")


def _ready_for_pulumi(variables: Mapping[str, str]) -> Mapping[str, str]:
    """The variables with Pulumi and its language host on PATH, after the box's copy of the stacks is up to date."""
    if project := _project():
        sync(project / "stacks", Path(variables["CORRAL_STACKS"]), box_image(variables))
    try:
        search = find_pulumi({**os.environ, **variables}).search
    except EngineError as error:
        tell(f"{error.sentence}; everything else works")
        return variables
    first, *rest = variables["PATH"].split(os.pathsep)  # the stand-in provider stays ahead of all others
    return {**variables, "PATH": os.pathsep.join(dict.fromkeys([first, *map(str, search), *rest]))}


def _project() -> Path | None:
    try:
        return find_project()
    except Failure:
        return None  # the box is for any shell; only a project's stacks can be copied


def _settings(variables: Mapping[str, str], shell: Shell) -> list[str]:
    form = "set -gx {} {}" if shell is Shell.FISH else "export {}={}"
    return [form.format(name, shlex.quote(value)) for name, value in variables.items()]


def _document(now: control.BoxStatus) -> dict[str, Any]:
    return {
        "schema": "corral.box/1",
        "state": now.state,
        "dir": str(now.dir),
        "url": now.url,
        "pid": now.pid,
        "port": now.port,
        "started": now.started.isoformat() if now.started else None,
        "problem": now.problem,
        "no_machines_because": now.machines,
        "faults": list(now.faults),
    }


def _tell(now: control.BoxStatus) -> None:
    match now.state:
        case "running":
            typer.echo(f"the box runs at {now.url} (process {now.pid}, {_age(now.started)}); its state is in {now.dir}")
        case "crashed":
            typer.echo(f"the box in {now.dir} died; `corral box start` continues from its last saved state")
        case _:
            typer.echo(f"no box runs in {now.dir}; `corral box start` starts one")
    if now.machines and now.state == "running":
        typer.echo(f"its instances are no machines: {now.machines}")
    if now.faults:
        typer.echo(f"faults are in force: {'; '.join(now.faults)}")
    if now.problem:
        typer.echo(f"it has a problem: {now.problem}")


def _age(started: datetime | None) -> str:
    if started is None:
        return "just started"
    minutes = int((datetime.now(UTC) - started).total_seconds() // 60)
    return f"for {minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"for {minutes} min"
