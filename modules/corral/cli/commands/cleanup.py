"""`corral cleanup`: lists resources that belong to no stack, with their cost, and deletes them on request."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from corral.cli.support.exit_codes import ExitCode, Failure
from corral.cli.support.options import AnyEnvironment, AsJson, BoxDirectory, InBox, Project, Yes, examples, new_app
from corral.cli.support.output import confirm, show, show_json, waiting
from corral.cli.support.project import environment_names, find_environment, find_project
from corral.cli.support.target_account import account_option, use_account
from corral.engine.pulumi.environment import backend_url
from corral.forecast.cost.catalog_prices import catalog_prices
from corral.inventory.cleanup_report import CleanupFindings, DeclaredNames, deduplicated, find_in_region
from corral.inventory.deletion import can_delete, delete_resources
from corral.inventory.live_stacks import UnreadableBackend
from corral.inventory.resources import ResourceKind
from corral.inventory.scan import Session, open_session
from corral.report.account.cleanup_view import cleanup_document, cleanup_view
from corral.spec.spec_errors import SpecErrors
from corral.spec.yaml.catalog_file import project_catalog
from corral.spec.yaml.environment import Environment
from corral.spec.yaml.stack_files import read_environment

app = new_app()
Delete = Annotated[bool, typer.Option("--delete", help="Delete the orphans. Retained data is never deleted.")]


@app.command(epilog=examples("corral cleanup", "corral cleanup dev --delete", "corral cleanup --box --json"))
def cleanup(
    env: AnyEnvironment = None,
    delete: Delete = False,
    yes: Yes = False,
    project: Project = None,
    box: InBox = False,
    box_dir: BoxDirectory = None,
    json: AsJson = False,
) -> None:
    """List resources that no deployed stack owns, with their monthly cost.

    Deletes nothing without --delete. Reads the deployed stacks from the state backend (PULUMI_BACKEND_URL, or that of
    the box) and searches every region in which the project has an environment. Retained data is never deleted; it is
    listed if its base is not deployed. A stack file with errors is reported and skipped; --delete then needs an ENV.
    """
    where = find_environment(project, env) if env else find_project(project)
    specs, unread = (
        ([read_environment(where, env)], frozenset[str]())
        if env
        else _read_all(where, account_option(in_box=box, box_directory=box_dir), delete=delete)
    )
    use_account(in_box=box, box_directory=box_dir)
    sessions = {region: open_session(region) for region in sorted({spec.base.region for spec in specs})}
    backend = backend_url(os.environ, where / "stacks")
    _require_whole(backend)
    known = DeclaredNames(
        clusters=unread.union(spec.cluster.name for spec in specs), bases=frozenset(spec.base.name for spec in specs)
    )
    prices = partial(catalog_prices, catalog=project_catalog(where))
    with waiting(f"searching {', '.join(sessions)}"):
        by_region = [
            find_in_region(session, backend, known, only_declared=env is not None) for session in sessions.values()
        ]
        found = deduplicated(by_region)
    if json:
        show_json(cleanup_document(found, prices))
    else:
        for one in found:
            show(cleanup_view(one, prices(one.region)))
    if delete:
        _delete(sessions, found, yes=yes, quiet=json)


def _delete(sessions: Mapping[str, Session], found: Sequence[CleanupFindings], *, yes: bool, quiet: bool) -> None:
    to_delete = {one.region: [left.resource for left in one.orphans if can_delete(left.resource)] for one in found}
    number = sum(map(len, to_delete.values()))
    if not number:
        return
    running = sum(one.kind is ResourceKind.INSTANCE for resources in to_delete.values() for one in resources)
    among = f", including {running} running instances," if running else ""
    if not (yes or confirm(f"Permanently delete these {number} resources{among}?")):
        raise Failure("nothing was deleted - add --yes to skip the confirmation", ExitCode.REFUSED)
    each = (
        None if quiet else lambda resource: typer.echo(f"  deleted   {resource.kind}  {resource.name}  {resource.id}")
    )
    with waiting("deleting; retrying resources that are still in use"):
        done = [
            one
            for region, resources in to_delete.items()
            for one in delete_resources(sessions[region], resources, each)
        ]
    refused = [one for one in done if one.refusal]
    if not quiet:
        typer.echo(f"deleted {len(done) - len(refused)} of {len(done)}")
    if refused:
        lines = "".join(f"\n  {one.resource.kind} {one.resource.id}: {one.refusal}" for one in refused)
        raise Failure(f"AWS refused to delete {len(refused)}:{lines}")


def _require_whole(backend: str) -> None:
    """Raises UnreadableBackend if a state is damaged: its resources would look like orphans."""
    from corral.engine.pulumi.error_report import damage_lines

    if found := damage_lines(backend):
        raise UnreadableBackend("\n  ".join(("the deployed stacks cannot be read", *found)))


def _read_all(project: Path, account: str, *, delete: bool) -> tuple[Sequence[Environment], frozenset[str]]:
    """The environments of the project that can be read, and the names of the others, whose errors are printed.

    Raises SpecErrors if none can be read. With `delete`, raises Failure if one cannot be read: what its file declares
    must never look like an orphan.
    """
    names = environment_names(project)
    if not names:
        raise Failure(
            f"{project / 'stacks/cluster'} declares no environment - `corral new` creates one", ExitCode.WRONG_INPUT
        )
    specs: list[Environment] = []
    wrong: dict[str, SpecErrors] = {}
    for name in names:
        try:
            specs.append(read_environment(project, name))
        except SpecErrors as errors:
            wrong[name] = errors
    lines = dict.fromkeys(error for one in wrong.values() for error in one.errors)
    if not specs:
        raise SpecErrors(lines)
    for error in lines:
        typer.echo(f"corral: {error}", err=True)
    if wrong and delete:
        one = "--delete needs an ENV while a stack file has errors, e.g."
        raise Failure(f"{one} `corral cleanup {specs[0].cluster.name}{account} --delete`", ExitCode.WRONG_INPUT)
    if wrong:
        typer.echo(
            f"corral: {', '.join(wrong)} cannot be read: regions that only these environments use are skipped", err=True
        )
    return specs, frozenset(wrong)
