"""Finds the project, which is the directory that holds stacks/, and the environments in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from corral.cli.support.exit_codes import ExitCode, Failure
from corral.model.pulumi_files import stack_names

CLUSTERS = Path("stacks/cluster")


def find_project(chosen: Path | None = None, environ: Mapping[str, str] = os.environ) -> Path:
    """The project directory: the chosen one, or the nearest from here upwards, or the parent of $CORRAL_STACKS.

    CORRAL_STACKS comes last: after `corral box env` it names the box's copy, not the original. Raises Failure if there
    is none.
    """
    if chosen is not None:
        return _checked(chosen)
    here = _here()
    for directory in (here, *here.parents):
        if (directory / CLUSTERS).is_dir():
            return directory
    if stacks := environ.get("CORRAL_STACKS"):
        return _checked(Path(stacks).parent)
    raise Failure(
        f"no corral project: neither {here} nor a parent directory holds {CLUSTERS}"
        " - change to a project, or add --project DIR",
        ExitCode.WRONG_INPUT,
    )


def find_environment(chosen: Path | None, name: str) -> Path:
    """The project directory that declares this environment. Raises Failure or EngineError if there is none."""
    from corral.engine.pulumi.projects import environment_file  # shell completion does not need the engine

    project = find_project(chosen)
    environment_file(project / "stacks", name)
    return project


def environment_names(chosen: Path | None = None, stack: str = "cluster") -> tuple[str, ...]:
    """The sorted names of the project's environments, or bases by `stack`; empty outside of a project."""
    try:
        return stack_names(find_project(chosen) / "stacks" / stack)
    except (Failure, OSError):
        return ()


def _checked(directory: Path) -> Path:
    if (directory / CLUSTERS).is_dir():
        return directory
    raise Failure(
        f"{directory} is not a corral project: it has no {CLUSTERS} - give the directory that holds stacks/",
        ExitCode.WRONG_INPUT,
    )


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise Failure(
            f"the current directory cannot be read: {error.strerror} - change to another one, or add --project DIR",
            ExitCode.WRONG_INPUT,
        ) from None
