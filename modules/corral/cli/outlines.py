"""What looking at an environment needs of its files. Who edits them can look all the while at what runs and costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from corral.catalog.problems import CatalogueErrors
from corral.catalog.project import Catalogue, project_catalogue, shipped_catalogue
from corral.cli.account import account_option
from corral.cli.project import find_environment
from corral.spec.errors import SpecErrors
from corral.spec.files import Environment, read_environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """An environment by its names, its region and the prices there. `mistakes`: a line, where its files have some.

    `account_option`: what a command line that is told to somebody ends with, to mean the account that is looked at.
    `spec`: all that its files say, None where they have mistakes.
    """

    name: str
    base: str
    region: str
    catalogue: Catalogue
    account_option: str
    mistakes: str = ""
    spec: Environment | None = None


def read_outline(chosen: Path | None, env: str, *, in_box: bool, box_directory: Path | None) -> Outline:
    """The outline of the project's environment of this name, in whose files all else may be wrong.

    Raises Failure or EngineError where there is none, SpecErrors where base or region cannot be told.
    """
    project = find_environment(chosen, env)
    account = account_option(in_box=in_box, box_directory=box_directory)
    try:
        spec = read_environment(project, env)
    except (SpecErrors, CatalogueErrors) as mistakes:
        return _salvaged(project, env, account, mistakes)
    base, catalogue = spec.base, spec.catalogue
    return Outline(name=env, base=base.name, region=base.region, catalogue=catalogue, account_option=account, spec=spec)


def _salvaged(project: Path, env: str, account: str, mistakes: SpecErrors | CatalogueErrors) -> Outline:
    """The outline as `down` would find it. Raises the mistakes where they are about the region."""
    from corral.engine.projects import base_of, region_of

    if any(one.path == "aws:region" for one in mistakes.errors):
        raise mistakes
    stacks = project / "stacks"
    base = base_of(stacks, env)
    declared = (stacks / "cluster" / f"Pulumi.{env}.yaml", stacks / "base" / f"Pulumi.{base}.yaml")
    region = next((found for file in declared if (found := region_of(file))), None)
    if region is None:
        raise mistakes
    try:
        catalogue = project_catalogue(project)
    except CatalogueErrors:
        catalogue = shipped_catalogue()
    files = ", ".join(dict.fromkeys(one.file for one in mistakes.errors))
    told = f"there are mistakes in {files} - `corral plan {env}` lists them"
    return Outline(name=env, base=base, region=region, catalogue=catalogue, account_option=account, mistakes=told)
