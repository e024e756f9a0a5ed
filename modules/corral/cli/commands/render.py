"""`corral render`: writes every file that a deployment would contain to a directory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from corral import render as files_of
from corral.catalog.aws.images import BOX_PROFILE
from corral.cli.support.exit_codes import ExitCode, Failure, name_file_in_errors
from corral.cli.support.options import AsJson, Environment, Project, examples, new_app
from corral.cli.support.output import show, show_json
from corral.cli.support.project import find_environment
from corral.forecast.cost.catalog_prices import catalog_prices
from corral.forecast.cost.price_source import PriceList
from corral.forecast.declared_runs import with_forecasts
from corral.model.cluster import ClusterPlan
from corral.model.deployed import BootFacts
from corral.model.enums import Role
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.render.output_dir import FileChange, compare, write
from corral.report.plan.render_changes import changes_document, changes_view, difference_view
from corral.spec.yaml.stack_files import read_environment

app = new_app()
PUBLIC_KEY = "PUBLIC KEY"  # placeholder: KMS makes it
ACCOUNT = "ACCOUNT"  # placeholder: only AWS knows the account's number
README = """Rendered by `corral render {name}`: the files that `corral up {name}` would deploy.

Everything except this file and user-data/ goes to the cluster's prefix in the base's bucket. Machines boot with
user-data/head.yaml and user-data/compute.yaml. In these, and in containers/credentials, {account} stands for the
account's number. deployed.json is missing: its ids are known only after `corral up`.
"""
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Directory to write; created if missing.")]
Diff = Annotated[bool, typer.Option("--diff", help="Show the differences from DIR and write nothing.")]
ForBox = Annotated[bool, typer.Option("--box", help="Render for the local AWS emulator.")]


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
    """Write every file that a deployment would contain.

    Renders the files of Slurm, NCCL, jobs and user data without an account. Overwrites and removes only files that
    corral wrote before; any other file in the way is an error (exit code 4), and so is a link in DIR (exit code 2).
    """
    _check_directory(out)
    spec = read_environment(find_environment(project, env), env)
    profile = BOX_PROFILE if box else None
    plan = plan_cluster(spec.cluster, plan_base(spec.base), catalog=spec.catalog, image_profile=profile)
    plan = with_forecasts(plan, spec)
    files = _files(plan, catalog_prices(plan.region, spec.catalog))
    with name_file_in_errors(out):
        changes = compare(out, files) if diff else write(out, files)
    if json:
        show_json(changes_document(changes, str(out)))
    else:
        show(_view(changes, out, diff=diff))


def _check_directory(out: Path) -> None:
    nearest = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not nearest.is_dir():
        raise Failure(f"--out {out}: {nearest} is a file - give a directory", ExitCode.WRONG_INPUT)


def _files(plan: ClusterPlan, prices: PriceList) -> Mapping[str, str]:
    boot = _boot_facts(plan)
    users = {f"user-data/{role.value}.yaml": files_of.user_data(plan, role, boot) for role in Role}
    readme = README.format(name=plan.name, account=ACCOUNT)
    return {
        **files_of.cluster_files(plan, prices),
        **files_of.account_files(plan, ACCOUNT),
        **users,
        "README.txt": readme,
    }


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
        public_key=PUBLIC_KEY,
    )


def _view(changes: tuple[FileChange, ...], out: Path, *, diff: bool) -> Iterator[RenderableType]:
    return difference_view(changes) if diff else changes_view(changes, str(out))
