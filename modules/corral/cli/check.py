"""`corral check`: whether the account can start an environment now, asked of AWS and changing nothing."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from corral.cli.account import mean_account
from corral.cli.failure import ExitCode, Failure, at, tell
from corral.cli.options import AsJson, BoxDirectory, Environment, Html, InBox, Project, examples, new_app
from corral.cli.project import find_environment
from corral.cli.screen import show, show_json, show_lines, waiting
from corral.report.check import check_document, check_view
from corral.spec.files import Environment as Spec
from corral.spec.files import read_environment

app = new_app()
Skip = Annotated[
    list[str] | None, typer.Option("--skip", metavar="CHECK", help="Leave out this check; may be given several times.")
]
Only = Annotated[
    list[str] | None, typer.Option("--only", metavar="CHECK", help="Make this check alone; may be given several times.")
]
ListThem = Annotated[bool, typer.Option("--list", help="Only list the checks.")]


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
    """Ask the account whether it can start an environment now. Nothing is changed.

    Each finding is ok, warn or fail, with what would make it right. The exit code is 3 where one is fail, and 4 where
    an hour may cost more than the environment's limit: such a one is not asked for, unless --only names checks.
    """
    from corral.engine.spending import refuse_overspending
    from corral.preflight.checks import run, skipped

    source = find_environment(project, env)
    spec = read_environment(source, env)
    in_box = box or box_dir is not None
    mean_account(in_box=in_box, box_directory=box_dir)
    known, absent = _known(source, only or [], in_box=in_box)
    if list_them:
        show_lines(f"{one.name:<14} {one.purpose}" for one in known)
        return
    chosen = _chosen([one.name for one in known], skip or [], only or [])
    if not only:
        refuse_overspending(spec)
    with waiting(f"asking the account whether it can start {env}"):
        session, wanted, refused = _question(spec, in_box=in_box)
        made = run([one for one in known if one.name in chosen], session, wanted)
    findings = [
        *made,
        *(skipped(one) for one in known if one.name not in chosen),
        *(skipped(one, "in the box") for one in absent),
    ]
    for sentence in refused:
        tell(sentence)
    if html is not None:
        _write(html, env, wanted, findings)
    if json:
        show_json(check_document(env, findings))
    else:
        show(check_view(env, wanted.cluster.region, findings))
    if any(one.verdict == "fail" for one in findings):
        raise typer.Exit(ExitCode.CANNOT_START)


def _write(file: Path, env: str, wanted: Any, findings: list[Any]) -> None:
    from corral.report.check_page import check_page

    with at(file):
        file.write_text(check_page(env, wanted.cluster.region, findings, wanted.now), encoding="utf-8")


def _known(source: Path, only: list[str], *, in_box: bool) -> tuple[list[Any], list[Any]]:
    """The checks that there are, and those that the box is not asked: it keeps its states itself.

    What `up` does not look at there is looked at where somebody names it.
    """
    from corral.engine.checking import state_check
    from corral.engine.starting import NOT_IN_THE_BOX
    from corral.preflight.checks import CHECKS

    state = state_check(source / "stacks", os.environ)
    if not in_box:
        return [state, *CHECKS], []
    absent = [one for one in CHECKS if one.name in NOT_IN_THE_BOX and one.name not in only]
    return [one for one in CHECKS if one not in absent], [state, *absent]


def _chosen(known: list[str], skip: list[str], only: list[str]) -> frozenset[str]:
    """The names of the checks to make. Raises Failure for a name that no check has, and where none is left."""
    for name in (*skip, *only):
        if name not in known:
            raise Failure(f"there is no check {name} - there are {', '.join(known)}", ExitCode.WRONG_INPUT)
    chosen = frozenset(only or known) - frozenset(skip)
    if not chosen:
        raise Failure("no check is left: --skip leaves out all that would be made", ExitCode.WRONG_INPUT)
    return chosen


def _question(spec: Spec, *, in_box: bool) -> tuple[Any, Any, list[str]]:
    """Whom to ask, and what: in the box, what stands for the user's own things is made first, as the first `up` does.

    And a sentence for each of them that the box refuses.
    """
    from corral.engine.belongings import lay_for_check
    from corral.engine.projects import box_image
    from corral.inventory.account import open_session
    from corral.plan.base import plan_base
    from corral.plan.cluster import plan_cluster
    from corral.preflight.findings import Wanted

    base = plan_base(spec.base)
    image = box_image(os.environ) if in_box else None
    cluster = plan_cluster(spec.cluster, base, catalogue=spec.catalogue, image_profile=image)
    session: Any = open_session(base.region, quick=True)
    refused = list(lay_for_check(session, spec, base, cluster)) if in_box else []
    return session, Wanted(base=base, cluster=cluster, now=datetime.now(UTC)), refused
