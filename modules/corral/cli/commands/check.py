"""`corral check`: checks whether an account can start an environment now. Changes nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from corral.cli.support.exit_codes import ExitCode, Failure, print_error
from corral.cli.support.options import AsJson, BoxDirectory, Environment, Html, InBox, Project, examples, new_app
from corral.cli.support.output import show, show_json, show_lines, waiting
from corral.cli.support.page_file import write_page
from corral.cli.support.project import find_environment
from corral.cli.support.target_account import box_owner, use_account
from corral.report.account.check_view import check_document, check_view
from corral.spec.yaml.environment import Environment as Spec
from corral.spec.yaml.stack_files import read_environment

app = new_app()
Skip = Annotated[list[str] | None, typer.Option("--skip", metavar="CHECK", help="Skip this check (repeatable).")]
Only = Annotated[list[str] | None, typer.Option("--only", metavar="CHECK", help="Run only this check (repeatable).")]
ListThem = Annotated[bool, typer.Option("--list", help="List the checks and exit.")]


@app.command(
    epilog=examples(
        "corral check dev",
        "corral check train --box",
        "corral check dev --skip images --json",
        "corral check dev --html check.html",
    )
)
def check(
    env: Environment,
    project: Project = None,
    box: InBox = False,
    box_dir: BoxDirectory = None,
    skip: Skip = None,
    only: Only = None,
    list_them: ListThem = False,
    html: Html = None,
    json: AsJson = False,
) -> None:
    """Check whether an account can start an environment now.

    Changes nothing. Each finding is ok, warn or fail, with the way to fix it. The exit code is 3 if a check fails, and
    4 if the environment may exceed its hourly cost limit; then no check runs, unless --only names some.
    """
    from corral.preflight.checks import run, skipped
    from corral.stacks.admission import refuse_overspending

    source = find_environment(project, env)
    spec = read_environment(source, env)
    in_box = box or box_dir is not None
    use_account(in_box=in_box, box_directory=box_dir)
    known, absent = _known(source, in_box=in_box)
    if list_them:
        show_lines(f"{one.name:<14} {one.purpose}" for one in known)
        return
    chosen = _chosen([one.name for one in known], skip or [], only or [])
    if not only:
        refuse_overspending(spec)
    with waiting(f"checking whether the account can start {env}"):
        session, request, refused = _prepare(spec, box_owner(box_dir) if in_box else None)
        made = run([one for one in known if one.name in chosen], session, request)
    findings = [
        *made,
        *(skipped(one) for one in known if one.name not in chosen),
        *(skipped(one, "in the box") for one in absent),
    ]
    for sentence in refused:
        print_error(sentence)
    if html is not None:
        _write(html, env, request, findings)
    if json:
        show_json(check_document(env, findings))
    else:
        show(check_view(env, request.cluster.region, findings))
    if any(one.verdict == "fail" for one in findings):
        raise typer.Exit(ExitCode.CANNOT_START)


def _write(file: Path, env: str, request: Any, findings: list[Any]) -> None:
    from corral.report.pages.check_page import check_page

    write_page(file, check_page(env, request.cluster.region, findings, request.now))


def _known(source: Path, *, in_box: bool) -> tuple[list[Any], list[Any]]:
    """The checks that can run, and those that the box skips, since it manages its own state backend."""
    from corral.engine.lifecycle.backend_check import state_check
    from corral.preflight.checks import CHECKS

    state = state_check(source / "stacks", os.environ)
    return ([*CHECKS], [state]) if in_box else ([state, *CHECKS], [])


def _chosen(known: list[str], skip: list[str], only: list[str]) -> frozenset[str]:
    """The names of the checks to run. Raises Failure for an unknown name, or if no check remains."""
    for name in (*skip, *only):
        if name not in known:
            raise Failure(f"unknown check {name!r} - expected one of {', '.join(known)}", ExitCode.WRONG_INPUT)
    chosen = frozenset(only or known) - frozenset(skip)
    if not chosen:
        raise Failure("no check remains: --skip excludes all of them", ExitCode.WRONG_INPUT)
    return chosen


def _prepare(spec: Spec, owner: Mapping[str, str] | None) -> tuple[Any, Any, list[str]]:
    """The session to query, the plans to check, and an error for each stand-in that the box refuses to create.

    In the box, stand-ins for the user's own resources are created first, as the first `up` does. `owner`: there, the
    variables of the account's owner.
    """
    from corral.engine.lifecycle.external_resources import create_stand_ins_for_check
    from corral.engine.pulumi.engine_account import Account
    from corral.engine.pulumi.projects import box_image
    from corral.inventory.scan import open_session
    from corral.plan.base import plan_base
    from corral.plan.cluster import plan_cluster
    from corral.preflight.preflight_findings import PreflightRequest

    base = plan_base(spec.base)
    image = box_image(os.environ) if owner else None
    cluster = plan_cluster(spec.cluster, base, catalog=spec.catalog, image_profile=image)
    session: Any = open_session(base.region, quick=True)
    refused = list(create_stand_ins_for_check(Account(owner, base.region), spec, base, cluster)) if owner else []
    return session, PreflightRequest(base=base, cluster=cluster, now=datetime.now(UTC)), refused
