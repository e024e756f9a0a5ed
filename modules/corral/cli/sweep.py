"""`corral sweep`: what nobody needs any more, what it costs, and on request its end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from corral.catalog.project import project_catalogue
from corral.cli.account import account_option, mean_account
from corral.cli.failure import ExitCode, Failure
from corral.cli.options import AnyEnvironment, AsJson, BoxDirectory, InBox, Project, Yes, examples, new_app
from corral.cli.project import environment_names, find_environment, find_project
from corral.cli.screen import ask, show, show_json, waiting
from corral.engine.environment import backend_url
from corral.forecast.catalogue import catalogue_prices
from corral.inventory.account import Session, open_session
from corral.inventory.deletion import can_delete, delete_things
from corral.inventory.findings import Findings, Known, each_once, find
from corral.inventory.states import UnreadableBackend
from corral.inventory.things import Kind
from corral.report.leftovers import leftovers_document, leftovers_view
from corral.spec.errors import SpecErrors
from corral.spec.files import Environment, read_environment

app = new_app()
Delete = Annotated[bool, typer.Option("--delete", help="Delete what was left behind. Kept data is never touched.")]


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

    Which stacks are up is read from the state backend (PULUMI_BACKEND_URL, or the box's own). Every region in which
    the project has an environment is looked at. Kept data is never touched, and listed where its base is not up. A
    stack file that is wrong is named and passed over, but then only what belongs to one environment can be deleted.
    """
    where = find_environment(project, env) if env else find_project(project)
    specs, unread = (
        ([read_environment(where, env)], frozenset[str]())
        if env
        else _read_all(where, account_option(in_box=box, box_directory=box_dir), delete=delete)
    )
    mean_account(in_box=box, box_directory=box_dir)
    sessions = {region: open_session(region) for region in sorted({spec.base.region for spec in specs})}
    backend = backend_url(os.environ, where / "stacks")
    _require_whole(backend)
    known = Known(
        clusters=unread.union(spec.cluster.name for spec in specs), bases=frozenset(spec.base.name for spec in specs)
    )
    prices = partial(catalogue_prices, catalogue=project_catalogue(where))
    with waiting(f"looking around in {', '.join(sessions)}"):
        by_region = [find(session, backend, known, only_known=env is not None) for session in sessions.values()]
        found = each_once(by_region)
    if json:
        show_json(leftovers_document(found, prices))
    else:
        for one in found:
            show(leftovers_view(one, prices(one.region)))
    if delete:
        _delete(sessions, found, yes=yes, quiet=json)


def _delete(sessions: Mapping[str, Session], found: Sequence[Findings], *, yes: bool, quiet: bool) -> None:
    doomed = {one.region: [left.thing for left in one.leftovers if can_delete(left.thing)] for one in found}
    number = sum(map(len, doomed.values()))
    if not number:
        return
    running = sum(thing.kind is Kind.INSTANCE for things in doomed.values() for thing in things)
    among = f", {running} running instances among them," if running else ""
    if not (yes or ask(f"Delete these {number} things{among} for good?")):
        raise Failure("nothing was deleted - add --yes to delete without being asked", ExitCode.REFUSED)
    each = None if quiet else lambda thing: typer.echo(f"  deleted   {thing.kind}  {thing.name}  {thing.id}")
    with waiting("deleting; what others still hold is tried again"):
        done = [one for region, things in doomed.items() for one in delete_things(sessions[region], things, each)]
    refused = [one for one in done if one.refusal]
    if not quiet:
        typer.echo(f"deleted {len(done) - len(refused)} of {len(done)}")
    if refused:
        told = "".join(f"\n  {one.thing.kind} {one.thing.id}: {one.refusal}" for one in refused)
        raise Failure(f"AWS did not let go of {len(refused)}:{told}")


def _require_whole(backend: str) -> None:
    """Raises UnreadableBackend where a state is damaged: what lives would look left behind."""
    from corral.engine.complaint import damage

    if found := damage(backend):
        raise UnreadableBackend("\n  ".join(("which stacks live cannot be read", *found)))


def _read_all(project: Path, account: str, *, delete: bool) -> tuple[Sequence[Environment], frozenset[str]]:
    """All environments of the project that can be read, and the names of the others, which are told.

    Raises SpecErrors where none can be read, and Failure where something should be deleted without knowing them all:
    what a file declares that cannot be read must never look left behind.
    """
    names = environment_names(project)
    if not names:
        raise Failure(f"{project / 'stacks/cluster'} declares no environment", ExitCode.WRONG_INPUT)
    specs: list[Environment] = []
    wrong: dict[str, SpecErrors] = {}
    for name in names:
        try:
            specs.append(read_environment(project, name))
        except SpecErrors as errors:
            wrong[name] = errors
    told = dict.fromkeys(error for errors in wrong.values() for error in errors.errors)
    if not specs:
        raise SpecErrors(told)
    for error in told:
        typer.echo(f"corral: {error}", err=True)
    if wrong and delete:
        one = "--delete without an environment needs every stack file; name one, such as"
        raise Failure(f"{one} `corral sweep {specs[0].cluster.name}{account} --delete`", ExitCode.WRONG_INPUT)
    if wrong:
        typer.echo(f"corral: {', '.join(wrong)} cannot be read: regions that only it names are left out", err=True)
    return specs, frozenset(wrong)
