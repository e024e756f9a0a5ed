"""`corral render`: every file as it would be deployed, in a directory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from corral import render as files_of
from corral.catalog.images import BOX_PROFILE
from corral.cli.failure import ExitCode, Failure, at
from corral.cli.options import AsJson, Environment, Project, examples, new_app
from corral.cli.project import find_environment
from corral.cli.screen import show, show_json
from corral.model.cluster import ClusterPlan
from corral.model.deployed import BootFacts
from corral.model.markets import Role
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.render.directory import FileChange, compare, write
from corral.report.changes import changes_document, changes_view, difference_view
from corral.spec.files import read_environment

app = new_app()
ACCOUNT = "ACCOUNT"  # stands where only AWS knows what will stand there
NOTE = """Rendered by `corral render {name}`: what `corral up {name}` would deploy.

Files below clusters' prefix in the base's bucket: everything but this file and user-data/.
user-data/head.yaml, user-data/compute.yaml: what the machines boot with. In them the bucket's name has the word
{account} where the account's number will stand. deployed.json is not here: it holds ids, known only after `up`.
"""
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the files go; made if it is not there.")]
Diff = Annotated[bool, typer.Option("--diff", help="Write nothing: show what would differ from the files in DIR.")]
ForBox = Annotated[bool, typer.Option("--box", help="As the AWS on this machine would get them.")]


@app.command(
    epilog=examples("corral render dev --out out/dev", "corral render dev --out out/dev --diff"),
)
def render(
    env: Environment,
    out: Out,
    diff: Diff = False,
    box: ForBox = False,
    project: Project = None,
    json: AsJson = False,
) -> None:
    """Write every file as it would be deployed: Slurm, NCCL, jobs, user data. No account is used.

    Only files that corral wrote before are overwritten or removed; others in the way are an error (exit code 4).
    """
    _check_directory(out)
    spec = read_environment(find_environment(project, env), env)
    profile = BOX_PROFILE if box else None
    plan = plan_cluster(spec.cluster, plan_base(spec.base), catalogue=spec.catalogue, image_profile=profile)
    files = _files(plan)
    with at(out):
        changes = compare(out, files) if diff else write(out, files)
    if json:
        show_json(changes_document(changes, str(out)))
    else:
        show(_view(changes, out, diff=diff))


def _check_directory(out: Path) -> None:
    there = next(place for place in (out, *out.absolute().parents) if place.exists())
    if not there.is_dir():
        raise Failure(f"--out {out}: {there} is a file - name a directory", ExitCode.WRONG_INPUT)


def _files(plan: ClusterPlan) -> Mapping[str, str]:
    boot = _boot_facts(plan)
    users = {f"user-data/{role.value}.yaml": files_of.user_data(plan, role, boot) for role in Role}
    return {**files_of.cluster_files(plan), **users, "README.txt": NOTE.format(name=plan.name, account=ACCOUNT)}


def _boot_facts(plan: ClusterPlan) -> BootFacts:
    agent, library = (hashlib.sha256(made).hexdigest() for made in (files_of.agent_bundle(), files_of.agent_library()))
    return BootFacts(
        cluster=plan.name,
        region=plan.region,
        bucket=f"corral-{plan.base}-{ACCOUNT}-{plan.region}",
        prefix=plan.prefix,
        bundle_key=f"{plan.prefix}/agent/{agent[:16]}.tar.gz",
        bundle_sha256=agent,
        library_key=f"{plan.prefix}/library/{library[:16]}.tar.gz",
        library_sha256=library,
    )


def _view(changes: tuple[FileChange, ...], out: Path, *, diff: bool) -> Iterator[RenderableType]:
    return difference_view(changes) if diff else changes_view(changes, str(out))
