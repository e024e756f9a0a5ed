"""`corral upgrade ...`: moves what the first up has pinned; here it gets its options and words."""

from __future__ import annotations

from corral.cli.engine_room import Bench, set_up
from corral.cli.options import AsJson, BoxDirectory, Environment, InBox, Project, Yes, examples, new_app
from corral.cli.up import Wait

app = new_app("Move what the first up has pinned. Nothing else ever does.")


@app.callback()
def upgrade() -> None:
    """Move what the first up has pinned. Nothing else ever does."""


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
    """Let new machines boot the newest image of their profile. Machines that run keep theirs."""
    bench = Bench(project=project, in_box=in_box, box_directory=box_directory, json=json, wait=wait)
    _run(bench, environment, yes=yes)


def _run(bench: Bench, environment: str, *, yes: bool) -> None:
    from corral.engine.complaint import damage_named
    from corral.engine.projects import environment_file
    from corral.engine.upgrade import upgrade_images
    from corral.plan.base import plan_base
    from corral.plan.cluster import plan_cluster
    from corral.spec.files import read_environment

    environment_file(bench.source / "stacks", environment)
    wanted = read_environment(bench.source, environment)
    ask = None if yes else bench.asker()
    place = set_up(bench)
    image, base = place.image_profile, plan_base(wanted.base)
    plan = plan_cluster(wanted.cluster, base, catalogue=wanted.catalogue, image_profile=image)
    with damage_named(place.engine.environment["PULUMI_BACKEND_URL"]):
        bench.show(upgrade_images(place, wanted, plan, ask=ask).to_document())
