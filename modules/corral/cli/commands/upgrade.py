"""`corral upgrade ...`: updates what the first deployment has pinned."""

from __future__ import annotations

from corral.cli.commands.up import Wait
from corral.cli.support.deployment import CommonOptions, start_session
from corral.cli.support.options import AsJson, BoxDirectory, Environment, InBox, Project, Yes, examples, new_app

app = new_app("Update what the first deployment has pinned.")


@app.callback(epilog=examples("corral upgrade image dev"))
def upgrade() -> None:
    """Update what the first deployment has pinned."""


@app.command(epilog=examples("corral upgrade image dev", "corral upgrade image dev --box --yes"))
def image(
    environment: Environment,
    project: Project = None,
    in_box: InBox = False,
    box_directory: BoxDirectory = None,
    yes: Yes = False,
    wait: Wait = False,
    json: AsJson = False,
) -> None:
    """Use the newest image for new instances.

    Running instances keep their image. An image that the spec names by id does not change.
    """
    options = CommonOptions(project=project, in_box=in_box, box_directory=box_directory, json=json, wait=wait)
    _run(options, environment, yes=yes)


def _run(options: CommonOptions, environment: str, *, yes: bool) -> None:
    from corral.engine.lifecycle.upgrade import upgrade_images
    from corral.engine.pulumi.error_report import report_damaged_state
    from corral.engine.pulumi.projects import environment_file
    from corral.stacks.admission import admit, plan_admitted

    environment_file(options.source / "stacks", environment)
    spec = admit(options.source, environment)  # what the up afterwards would refuse, before any image is pinned
    confirm = None if yes else options.confirmation()
    session = start_session(options)
    planned = plan_admitted(spec, session.image_profile)
    with report_damaged_state(session.engine.environment["PULUMI_BACKEND_URL"]):
        done = upgrade_images(session, spec, planned.base, planned.cluster, confirm=confirm)
        options.show_result(done.to_document())
