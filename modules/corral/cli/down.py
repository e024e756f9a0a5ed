"""`corral down`: takes an environment down through the engine room; here it gets its options and words."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.engine_room import Bench, set_up
from corral.cli.options import AsJson, BoxDirectory, Environment, InBox, Project, Yes, examples, new_app
from corral.cli.up import Wait, state_told

if TYPE_CHECKING:
    from corral.cli.draining import Draining
    from corral.inventory.kept import KeptThing

app = new_app()
WithBase = Annotated[bool, typer.Option("--with-base", help="Take the base down too; what holds data is kept.")]
DeleteData = Annotated[
    str | None,
    typer.Option("--delete-data", metavar="BASE", help="Take the base of this name down with ALL ITS DATA."),
]
Now = Annotated[
    bool, typer.Option("--now", help="Also while jobs run: they are asked for a checkpoint, and then ended.")
]
Grace = Annotated[
    int,
    typer.Option(
        "--grace",
        metavar="SECONDS",
        min=0,
        max=86_400,
        help="How long jobs have to save and end, with --now: a day at most.",
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
    """Take an environment's cluster down. Its base stays, with all data, unless you say otherwise.

    While jobs run this is refused (exit 4); --now ends them. --yes does not mean --now.
    """
    bench = Bench(project=project, in_box=in_box, box_directory=box_directory, json=json, wait=wait)
    from corral.cli.draining import Draining

    jobs = Draining(now=now, grace_s=grace)
    _run(bench, environment, jobs, yes=yes, with_base=with_base, delete_data=delete_data)


def _run(
    bench: Bench, environment: str, jobs: Draining, *, yes: bool, with_base: bool, delete_data: str | None
) -> None:
    from corral.engine import down as engine
    from corral.engine.complaint import damage_named
    from corral.engine.projects import base_of

    with state_told(bench, environment):
        base = base_of(bench.source / "stacks", environment)  # the spec's other mistakes do not matter any more
    if (box := bench.empty_box) and delete_data in (None, base):
        bench.say(f"cluster {environment}: is not up, nothing to take down: nothing was ever made in the box in {box}")
        return bench.show({**engine.DownResult().to_document(), "drained": None})
    ask = None if yes else bench.asker()
    place = set_up(bench)
    with damage_named(place.engine.environment["PULUMI_BACKEND_URL"]):
        done = engine.down(place, environment, ask=ask, with_base=with_base, delete_data=delete_data, jobs=jobs)
    for one in done.kept:
        place.printer.say(f"  kept      {one.kind}  {one.name}  {one.id}  {one.size}  {_cost(one)}".rstrip())
    bench.show({**done.to_document(), "drained": None if jobs.done is None else asdict(jobs.done)})


def _cost(kept: KeptThing) -> str:
    if kept.usd_per_month is None:
        return "(no price is known)"
    return f"{kept.usd_per_month:,.2f} USD/month" if kept.usd_per_month >= 0.005 else "free so far"
