"""`corral down`: deletes an environment. `engine.lifecycle.down` does the work, `drain_jobs` refuses while jobs run."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.commands.up import Wait, hint_at_existing_state
from corral.cli.support.deployment import CommonOptions, start_session
from corral.cli.support.options import AsJson, BoxDirectory, Environment, InBox, Project, Yes, examples, new_app

if TYPE_CHECKING:
    from corral.cli.support.drain_jobs import ClusterJobDrain
    from corral.inventory.retained_data import RetainedResource

app = new_app()
WithBase = Annotated[bool, typer.Option("--with-base", help="Also delete the base; retain its data.")]
DeleteData = Annotated[
    str | None,
    typer.Option("--delete-data", metavar="BASE", help="Also delete the base BASE with ALL ITS DATA."),
]
Now = Annotated[bool, typer.Option("--now", help="Checkpoint and stop running jobs first.")]
Grace = Annotated[
    int,
    typer.Option(
        "--grace",
        metavar="SECONDS",
        min=0,
        max=86_400,
        show_default=False,
        help="Time that --now gives jobs to checkpoint and exit (default: 120, at most 86400).",
    ),
]


@app.command(epilog=examples("corral down dev --box", "corral down dev --now", "corral down dev --delete-data dev"))
def down(
    environment: Environment,
    project: Project = None,
    in_box: InBox = False,
    box_directory: BoxDirectory = None,
    yes: Yes = False,
    now: Now = False,
    grace: Grace = 120,
    with_base: WithBase = False,
    delete_data: DeleteData = None,
    wait: Wait = False,
    json: AsJson = False,
) -> None:
    """Delete a cluster and keep its base and data.

    Refuses (exit code 4) while jobs run, unless --now is given; --yes does not imply --now.
    """
    options = CommonOptions(project=project, in_box=in_box, box_directory=box_directory, json=json, wait=wait)
    from corral.cli.support.drain_jobs import ClusterJobDrain

    jobs = ClusterJobDrain(now=now, grace_s=grace)
    _run(options, environment, jobs, yes=yes, with_base=with_base, delete_data=delete_data)


def _run(
    options: CommonOptions,
    environment: str,
    jobs: ClusterJobDrain,
    *,
    yes: bool,
    with_base: bool,
    delete_data: str | None,
) -> None:
    from corral.engine.lifecycle import down as engine
    from corral.engine.pulumi.error_report import report_damaged_state
    from corral.engine.pulumi.projects import base_of

    with hint_at_existing_state(options, environment):
        base = base_of(options.source / "stacks", environment)  # other errors of the spec do not matter here
    if (box := options.unused_box) and delete_data in (None, base):
        options.write(f"cluster {environment} is not up, nothing to delete: the box in {box} has never been used")
        return options.show_result({**engine.DownResult().to_document(), "drained": None})
    confirm = None if yes else options.confirmation()
    session = start_session(options)
    with report_damaged_state(session.engine.environment["PULUMI_BACKEND_URL"]):
        done = engine.down(
            session, environment, confirm=confirm, with_base=with_base, delete_data=delete_data, jobs=jobs
        )
    for one in done.retained:
        session.display.write(f"  retained  {one.kind}  {one.name}  {one.id}  {one.size}  {_cost(one)}".rstrip())
    options.show_result({**done.to_document(), "drained": None if jobs.result is None else asdict(jobs.result)})


def _cost(kept: RetainedResource) -> str:
    if kept.usd_per_month is None:
        return "(price unknown)"
    return f"{kept.usd_per_month:,.2f} USD/month" if kept.usd_per_month >= 0.005 else "free so far"
