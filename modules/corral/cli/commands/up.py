"""`corral up`: creates or updates an environment. `corral.engine.lifecycle.up` does the work."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from corral.box.state.directory import StateDirectory
from corral.cli.support.deployment import CommonOptions, start_session
from corral.cli.support.options import AsJson, BoxDirectory, Environment, InBox, Project, Yes, examples, new_app
from corral.cli.support.target_account import resolve_box_dir

if TYPE_CHECKING:
    from corral.spec.models.cluster import ClusterSpecInput

app = new_app()
PreviewOnly = Annotated[bool, typer.Option("--preview", help="Show the changes and make none.")]
TerminateInstances = Annotated[
    bool, typer.Option("--terminate-instances", help="Terminate instances in placement groups to be deleted.")
]
NoCheck = Annotated[bool, typer.Option("--no-check", help="Skip the checks of `corral check`.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for another corral on the same stack to finish.")]


@app.command(epilog=examples("corral up dev --box", "corral up dev --preview", "corral up dev --yes --json"))
def up(
    environment: Environment,
    project: Project = None,
    in_box: InBox = False,
    box_directory: BoxDirectory = None,
    yes: Yes = False,
    preview: PreviewOnly = False,
    end_machines: TerminateInstances = False,
    no_check: NoCheck = False,
    wait: Wait = False,
    json: AsJson = False,
) -> None:
    """Create or update an environment: the base, then the cluster.

    First runs `corral check`. Shows the changes to each stack and prompts for confirmation.
    """
    options = CommonOptions(project=project, in_box=in_box, box_directory=box_directory, json=json, wait=wait)
    _run(options, environment, yes=yes, only_preview=preview, end_machines=end_machines, check=not no_check)


@contextmanager
def hint_at_existing_state(options: CommonOptions, environment: str) -> Iterator[None]:
    """A block whose UnknownEnvironment error gets a hint if the backend still has the environment's state."""
    from corral.engine.engine_errors import UnknownEnvironment

    try:
        yield
    except UnknownEnvironment as error:
        from corral.engine.lifecycle.renamed_stacks import with_state_hint

        is_boxed = options.in_box or options.box_directory is not None
        box = f"file://{StateDirectory(resolve_box_dir(options.box_directory)).pulumi}" if is_boxed else None
        url = box or os.environ.get("PULUMI_BACKEND_URL", "")
        raise with_state_hint(error, environment, url, os.environ, options.account_option) from None


def _run(
    options: CommonOptions, environment: str, *, yes: bool, only_preview: bool, end_machines: bool, check: bool
) -> None:
    from corral.cli.support.apply_on_head import HeadConfigUpdate
    from corral.engine.lifecycle import up as engine
    from corral.engine.pulumi.error_report import report_damaged_state
    from corral.engine.pulumi.projects import environment_file
    from corral.stacks.admission import admit

    with hint_at_existing_state(options, environment):
        environment_file(options.source / "stacks", environment)
    spec = admit(options.source, environment)  # report all errors at once, before anything starts
    confirm = None if yes or only_preview else options.confirmation()
    if not only_preview:
        options.require_disk_space()
    session = start_session(options)
    applying = HeadConfigUpdate(session, spec)
    if (image := session.image_profile) and (notice := replaced_images(spec.cluster, image)):
        session.display.write(notice)
    with report_damaged_state(session.engine.environment["PULUMI_BACKEND_URL"]):
        if only_preview:
            done = engine.preview(session, spec)
        else:
            done = engine.up(session, spec, confirm=confirm, terminate_instances=end_machines, check=check)
    applied = None if only_preview else applying.apply()
    if problem := options.box_problem:
        session.display.write(f"the box has a problem: {problem}")
    options.show_result({**done.to_document(), "applied": applied})


def replaced_images(spec: ClusterSpecInput, profile: str) -> str | None:
    """The notice with the declared image ids that the box does not boot; None if there are none."""
    own = [("the cluster", spec.image), *((f"queue {queue.name}", queue.image) for queue in spec.queues)]
    named = [f"{image.id} of {whose}" for whose, image in own if image is not None and image.id is not None]
    return f"the box boots its own image, {profile}, in place of {', '.join(named)}" if named else None
