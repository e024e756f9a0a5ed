"""`corral box ...`: starts, stops and inspects the box, a local AWS emulator. corral.box.client does the work."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from corral.box import client
from corral.box.delays import delay_lines
from corral.box.state.directory import StateDirectory
from corral.box.switches import MAX_SPEED, Behaviour, Machines, Provider
from corral.cli.commands.box import fault, quota
from corral.cli.commands.box.options import Directory
from corral.cli.support.exit_codes import ExitCode, Failure, print_error
from corral.cli.support.options import AsJson, Yes, examples, new_app
from corral.cli.support.output import confirm, show_json
from corral.cli.support.project import find_project
from corral.cli.support.target_account import box_role, resolve_box_dir
from corral.engine.backend.stack_locks import file_lock_holders, hold_lock, state_directory
from corral.engine.engine_errors import EngineError
from corral.engine.pulumi.binary import find_pulumi
from corral.engine.pulumi.projects import box_image, sync_box_copy


class _OrderOfUse(TyperGroup):
    """The group `corral box`: its commands stand in the order of use, not commands first and groups last."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names. Raises ValueError for a command that _ORDER lacks."""
        return sorted(self.commands, key=_ORDER.index)


_ORDER = ("start", "status", "env", "fault", "quota", "stop", "reset")

app = new_app(
    "Control the box, a local AWS emulator.\n\nIt is one daemon per state directory, reachable from this machine only.",
    group=_OrderOfUse,
    epilog=examples(
        "corral box start", "corral up dev --box", "corral box fault spot-notice train-1", "corral box stop"
    ),
)
app.add_typer(fault.app, name="fault", epilog=fault.EXAMPLES)
app.command("quota", epilog=quota.EXAMPLES)(quota.quota)


ProviderSwitch = Annotated[
    Provider | None,
    typer.Option(
        "--provider",
        show_default=False,
        help="Pulumi provider: the fast one of the box, or AWS's own (default: as at the last start, first stand-in).",
    ),
]
MachinesSwitch = Annotated[
    Machines | None,
    typer.Option(
        "--machines",
        show_default=False,
        help="What instances are: records only, local machines with their own network and disk, or virtual machines"
        " with their own kernel and systemd (default: as at the last start, first namespace).",
    ),
]


BehaviourSwitch = Annotated[
    Behaviour | None,
    typer.Option(
        "--behaviour",
        show_default=False,
        help="When changes take effect: at once, or after the times that AWS needs (default: as at the last start,"
        " first instant).",
    ),
]
Speed = Annotated[
    int | None,
    typer.Option(
        "--speed",
        metavar="NUMBER",
        min=1,
        max=MAX_SPEED,
        show_default=False,
        help="Divide the times of an aws-like box by this number (default: as at the last start, first 1).",
    ),
]


class Shell(StrEnum):
    """The shells whose syntax `box env` writes."""

    POSIX = "posix"
    FISH = "fish"


@app.command(
    epilog=examples(
        "corral box start",
        "corral box start --dir /tmp/box1",
        "corral box start --provider official --machines none",
        "corral box start --behaviour aws-like --speed 20",
    )
)
def start(
    dir: Directory = None,
    provider: ProviderSwitch = None,
    machines: MachinesSwitch = None,
    behaviour: BehaviourSwitch = None,
    speed: Speed = None,
) -> None:
    """Start the box. It resumes from its saved state, and keeps its switches."""
    where = resolve_box_dir(dir)
    _print_status(
        client.start(
            where,
            provider=provider,
            machines=machines,
            behaviour=behaviour,
            speed=speed,
            report=lambda line: typer.echo(line, err=True),
        )
    )


@app.command(epilog=examples("corral box stop"))
def stop(dir: Directory = None) -> None:
    """Stop the box. Its state is saved for the next start."""
    where = resolve_box_dir(dir)
    stopped = client.stop(where)
    typer.echo(f"the box in {where} has stopped; its state is saved" if stopped else f"no box runs in {where}")


@app.command(epilog=examples("corral box status", "corral box status --json"))
def status(dir: Directory = None, json: AsJson = False) -> None:
    """Show the state, address, faults and problems of the box."""
    now = client.status(resolve_box_dir(dir))
    if json:
        show_json(_document(now))
    else:
        _print_status(now)


@app.command(
    epilog=examples(
        'eval "$(corral box env)"',
        "corral box env --shell fish | source",
        "corral box env --json",
        'eval "$(corral box env --role deployer)"',
    )
)
def env(
    dir: Directory = None,
    shell: Annotated[
        Shell, typer.Option(show_default=False, help="Shell syntax to write (default: posix).")
    ] = Shell.POSIX,
    role: Annotated[
        str | None,
        typer.Option(
            "--role",
            metavar="NAME",
            show_default=False,
            help="Role whose permissions apply (default: $CORRAL_BOX_ROLE, or none: any call is allowed).",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Print the variables that point pulumi, aws and boto3 at the box."""
    variables = _ready_for_pulumi(client.environment(resolve_box_dir(dir), role or box_role()))
    if json:
        show_json(dict(variables))
    else:
        typer.echo("\n".join(_settings(variables, shell)))


@app.command(epilog=examples("corral box reset --yes"))
def reset(dir: Directory = None, yes: Yes = False) -> None:
    """Delete everything in the box, and its Pulumi state."""
    where = resolve_box_dir(dir)
    if not (yes or confirm(f"Delete everything in the box in {where}?")):
        raise Failure(f"the box in {where} was not changed - add --yes to empty it", ExitCode.REFUSED)
    try:
        with _all_stacks_held(StateDirectory(where).pulumi, print_error):
            client.reset(where)
    except EngineError as error:
        sentence = f"the box in {where} was not changed: {error.sentence} - wait for the process to end, or stop it"
        raise Failure(sentence, ExitCode.REFUSED) from None
    typer.echo(f"the box in {where} is empty")


@contextmanager
def _all_stacks_held(backend: Path, write: Callable[[str], None]) -> Iterator[None]:
    """A block during which no corral process can start to work on a stack of this file backend.

    Raises EngineError, which names the process, if corral or Pulumi is working on one.
    """
    with ExitStack() as locks:
        for directory in sorted(state_directory(f"file://{backend}").glob("*.*/")):
            what = directory.name.removeprefix("corral-").replace(".", " ", 1)
            locks.enter_context(hold_lock(directory / "lock", what, wait=False, write=write))
        _require_no_pulumi(backend / ".pulumi" / "locks" / "organization")
        yield


def _require_no_pulumi(locks: Path) -> None:
    for directory in sorted(locks.glob("*/*/")):
        for holder in file_lock_holders(directory):
            if holder.is_alive:
                what = f"{directory.parent.name.removeprefix('corral-')} {directory.name}"
                since = f"{holder.since.astimezone():%H:%M:%S}"
                who = f"process {holder.pid} of {holder.user}, since {since}"
                raise EngineError(f"Pulumi ({who}) is working on {what}")


def _ready_for_pulumi(variables: Mapping[str, str]) -> Mapping[str, str]:
    """The variables with Pulumi and its language host on PATH. Updates the box's copy of the project first."""
    if project := _project():
        sync_box_copy(project / "stacks", Path(variables["CORRAL_STACKS"]), box_image(variables))
    try:
        search = find_pulumi({**os.environ, **variables}).search
    except EngineError as error:
        print_error(f"{error.sentence}; everything else works")
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


def _document(now: client.BoxStatus) -> dict[str, Any]:
    return {
        "schema": "corral.box/4",
        "state": now.state,
        "dir": str(now.dir),
        "url": now.url,
        "pid": now.pid,
        "port": now.port,
        "started": now.started.isoformat() if now.started else None,
        "switches": now.switches.document(),
        "delays": list(delay_lines(now.switches)),
        "problem": now.problem,
        "no_machines_reason": now.no_machines_reason,
        "faults": list(now.faults),
    }


def _print_status(now: client.BoxStatus) -> None:
    match now.state:
        case "running":
            typer.echo(
                f"the box runs at {now.url} (process {now.pid}, {_age(now.started)}); state directory: {now.dir}"
            )
        case "crashed":
            typer.echo(f"the box in {now.dir} has crashed - `corral box start` resumes from its last saved state")
        case _:
            typer.echo(f"no box runs in {now.dir} - `corral box start` starts one")
    if now.state == "running":
        typer.echo("switches: " + ", ".join(f"{name} {value}" for name, value in now.switches.document().items()))
        for line in delay_lines(now.switches):
            typer.echo(f"  {line}")
    if now.no_machines_reason and now.state == "running":
        typer.echo(f"instances do not boot as machines: {now.no_machines_reason}")
    if now.faults:
        typer.echo(f"active faults: {'; '.join(now.faults)}")
    if now.problem:
        typer.echo(f"problem: {now.problem}")


def _age(started: datetime | None) -> str:
    if started is None:
        return "just started"
    minutes = int((datetime.now(UTC) - started).total_seconds() // 60)
    return f"for {minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"for {minutes} min"
