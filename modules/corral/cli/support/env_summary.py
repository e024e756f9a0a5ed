"""What read-only commands need from an environment's files. They work even while the files have errors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from corral.catalog.project_catalog import Catalog, shipped_catalog
from corral.cli.support.project import find_environment
from corral.cli.support.target_account import account_option
from corral.spec.spec_errors import SpecErrors
from corral.spec.yaml.catalog_file import project_catalog
from corral.spec.yaml.environment import Environment
from corral.spec.yaml.stack_files import read_environment


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentSummary:
    """An environment's names, region and catalog. `problem`: a line if its files have errors.

    `account_option`: the end of suggested command lines that selects the same account. `spec`: None if the files have
    errors.
    """

    name: str
    base: str
    region: str
    catalog: Catalog
    account_option: str
    problem: str = ""
    spec: Environment | None = None


def read_summary(chosen: Path | None, env: str, *, in_box: bool, box_directory: Path | None) -> EnvironmentSummary:
    """The summary of an environment, even if its files have other errors.

    Raises Failure or EngineError if it does not exist, SpecErrors if its base or region cannot be read.
    """
    project = find_environment(chosen, env)
    account = account_option(in_box=in_box, box_directory=box_directory)
    try:
        spec = read_environment(project, env)
    except SpecErrors as mistakes:
        return _partial_summary(project, env, account, mistakes)
    base, catalog = spec.base, spec.catalog
    return EnvironmentSummary(
        name=env, base=base.name, region=base.region, catalog=catalog, account_option=account, spec=spec
    )


def _partial_summary(project: Path, env: str, account: str, mistakes: SpecErrors) -> EnvironmentSummary:
    """The summary from files with errors, read as `corral down` does. Raises the errors if they concern the region."""
    from corral.engine.pulumi.projects import base_of, region_of

    if any(one.path == "aws:region" for one in mistakes.errors):
        raise mistakes
    stacks = project / "stacks"
    base = base_of(stacks, env)
    declared = (stacks / "cluster" / f"Pulumi.{env}.yaml", stacks / "base" / f"Pulumi.{base}.yaml")
    region = next((found for file in declared if (found := region_of(file))), None)
    if region is None:
        raise mistakes
    try:
        catalog = project_catalog(project)
    except SpecErrors:
        catalog = shipped_catalog()
    files = ", ".join(dict.fromkeys(one.file for one in mistakes.errors))
    problem = f"errors in {files} - `corral plan {env}` lists them"
    return EnvironmentSummary(
        name=env, base=base, region=region, catalog=catalog, account_option=account, problem=problem
    )
