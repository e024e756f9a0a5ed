"""`corral sweep`: what nobody needs any more, what it costs, and on request its end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from corral.cli.account import mean_account
from corral.cli.failure import ExitCode, Failure
from corral.cli.options import AnyEnvironment, AsJson, BoxDirectory, InBox, Project, Yes, examples, new_app
from corral.cli.project import environment_names, find_project
from corral.cli.screen import ask, show, show_json
from corral.engine.environment import backend_url
from corral.forecast.catalogue import catalogue_prices
from corral.inventory.account import open_session, read_things
from corral.inventory.deletion import can_delete, delete_things
from corral.inventory.leftovers import Leftover, find_leftovers, of_environment, of_names
from corral.inventory.states import read_alive
from corral.inventory.things import Thing
from corral.report.leftovers import leftovers_document, leftovers_view
from corral.spec.files import read_environment

app = new_app()
Delete = Annotated[bool, typer.Option("--delete", help="Delete what was left behind. Kept data is never touched.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    leftovers: Sequence[Leftover]
    foreign: Sequence[Leftover]
    kept: Sequence[Thing]


@app.command(epilog=examples("corral sweep", "corral sweep dev --delete", "corral sweep --box --json"))
def sweep(
    env: AnyEnvironment = None,
    delete: Delete = False,
    yes: Yes = False,
    project: Project = None,
    box: InBox = False,
    box_dir: BoxDirectory = None,
    json: AsJson = False,
) -> None:
    """List what belongs to no stack that is up, with what it costs a month; delete it if told to.

    Which stacks are up is read from the state backend (PULUMI_BACKEND_URL, or the box's own).
    """
    where = find_project(project)
    spec = read_environment(where, env or _first(where))
    mean_account(in_box=box, box_directory=box_dir)
    session, prices = open_session(spec.base.region), catalogue_prices(spec.base.region)
    found = _find(session, where, (spec.cluster.name, spec.base.name) if env else None)
    if json:
        show_json(leftovers_document(found.leftovers, found.kept, found.foreign, prices))
    else:
        show(leftovers_view(found.leftovers, found.kept, found.foreign, prices))
    if delete:
        _delete(session, found.leftovers, yes=yes, quiet=json)


def _find(session: Any, project: Path, only: tuple[str, str] | None) -> _Found:
    things = read_things(session)
    alive = read_alive(backend_url(os.environ, project / "stacks"), session)
    leftovers = find_leftovers(things, alive)
    kept = [thing for thing in things if thing.keep is not None]
    if only:
        cluster, base = only
        named = of_environment(leftovers, cluster=cluster, base=base)
        return _Found(leftovers=named, foreign=(), kept=[thing for thing in kept if thing.base == base])
    known = of_names(leftovers, clusters=environment_names(project), bases=environment_names(project, "base"))
    foreign = [one for one in leftovers if one not in known]
    return _Found(leftovers=known, foreign=foreign, kept=kept)


def _delete(session: Any, leftovers: Sequence[Leftover], *, yes: bool, quiet: bool) -> None:
    doomed = [one.thing for one in leftovers if can_delete(one.thing)]
    if not doomed:
        return
    if not (yes or ask(f"Delete these {len(doomed)} things for good?")):
        raise Failure("nothing was deleted - add --yes to delete without being asked", ExitCode.REFUSED)
    done = delete_things(session, doomed)
    refused = [one for one in done if one.refusal]
    if not quiet:
        typer.echo(f"deleted {len(done) - len(refused)} of {len(done)}")
    if refused:
        told = "".join(f"\n  {one.thing.kind} {one.thing.id}: {one.refusal}" for one in refused)
        raise Failure(f"AWS did not let go of {len(refused)}:{told}")


def _first(project: Path) -> str:
    names = environment_names(project)
    if not names:
        raise Failure(f"{project / 'stacks/cluster'} declares no environment", ExitCode.WRONG_INPUT)
    return names[0]
