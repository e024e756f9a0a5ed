"""`corral up`: brings an environment up through the engine room; here it gets its options and words."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from corral.box.directory import StateDirectory
from corral.cli.account import box_state
from corral.cli.engine_room import Bench, set_up
from corral.cli.options import AsJson, BoxDirectory, Environment, InBox, Project, Yes, examples, new_app

app = new_app()
PreviewOnly = Annotated[bool, typer.Option("--preview", help="Only show what would be done.")]
EndMachines = Annotated[bool, typer.Option("--end-machines", help="End the machines whose placement groups go.")]
NoCheck = Annotated[bool, typer.Option("--no-check", help="Do not ask the account first whether it can start it.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for another corral that works on the same stack.")]


@app.command(epilog=examples("corral up dev --box", "corral up dev --preview", "corral up dev --yes --json"))
def up(
    environment: Environment,
    project: Project = None,
    in_box: InBox = False,
    box_directory: BoxDirectory = None,
    yes: Yes = False,
    preview: PreviewOnly = False,
    end_machines: EndMachines = False,
    no_check: NoCheck = False,
    wait: Wait = False,
    json: AsJson = False,
) -> None:
    """Bring an environment up: the base, then the cluster. What is up already is brought up to date.

    Before, the account is asked whether it can start it, as `corral check` does.
    """
    bench = Bench(project=project, in_box=in_box, box_directory=box_directory, json=json, wait=wait)
    _run(bench, environment, yes=yes, only_preview=preview, end_machines=end_machines, check=not no_check)


@contextmanager
def state_told(bench: Bench, environment: str) -> Iterator[None]:
    """A block whose error, that the environment is unknown, also says that its state is still there, if it is."""
    from corral.engine.errors import UnknownEnvironment

    try:
        yield
    except UnknownEnvironment as error:
        from corral.engine.former_names import with_its_state

        is_boxed = bench.in_box or bench.box_directory is not None
        box = f"file://{StateDirectory(box_state(bench.box_directory)).pulumi}" if is_boxed else None
        url = box or os.environ.get("PULUMI_BACKEND_URL", "")
        raise with_its_state(error, environment, url, os.environ, bench.account_option) from None


def _run(bench: Bench, environment: str, *, yes: bool, only_preview: bool, end_machines: bool, check: bool) -> None:
    from corral.cli.applying import Applying
    from corral.engine import up as engine
    from corral.engine.complaint import damage_named
    from corral.engine.projects import environment_file
    from corral.engine.spending import refuse_overspending
    from corral.report.box_image import replaced_images
    from corral.spec.files import read_environment

    with state_told(bench, environment):
        environment_file(bench.source / "stacks", environment)
    wanted = read_environment(bench.source, environment)  # all mistakes at once, before anything is started
    refuse_overspending(wanted)
    ask = None if yes or only_preview else bench.asker()
    if not only_preview:
        bench.require_room()
    place = set_up(bench)
    applying = Applying(place, wanted)
    if (image := place.image_profile) and (told := replaced_images(wanted.cluster, image)):
        place.printer.say(told)
    with damage_named(place.engine.environment["PULUMI_BACKEND_URL"]):
        if only_preview:
            done = engine.preview(place, wanted)
        else:
            done = engine.up(place, wanted, ask=ask, end_machines=end_machines, check=check)
    applied = None if only_preview else applying.apply()
    if told := bench.trouble:
        place.printer.say(f"the box has a problem: {told}")
    bench.show({**done.to_document(), "applied": applied})
