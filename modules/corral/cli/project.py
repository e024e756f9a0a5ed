"""Where the environments are declared: the directory that holds stacks/, and the names found in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from corral.cli.failure import ExitCode, Failure
from corral.model.stack_files import stack_names

CLUSTERS = Path("stacks/cluster")


def find_project(chosen: Path | None = None, environ: Mapping[str, str] = os.environ) -> Path:
    """The project directory: the chosen one, else the nearest from here upwards, else the parent of CORRAL_STACKS.

    CORRAL_STACKS comes last: in a shell that `corral box env` has set up it names the box's copy, not the original.
    Raises Failure where there is none.
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
        f"no corral project here: {here} and the directories above it hold no {CLUSTERS}"
        " - go to one, or name it with --project DIR",
        ExitCode.WRONG_INPUT,
    )


def find_environment(chosen: Path | None, name: str) -> Path:
    """The project directory, which declares an environment of this name. Raises Failure or EngineError where not."""
    from corral.engine.projects import environment_file  # completion needs none of the engine room

    project = find_project(chosen)
    environment_file(project / "stacks", name)
    return project


def environment_names(chosen: Path | None = None, stack: str = "cluster") -> tuple[str, ...]:
    """The names of the project's environments (or bases, by `stack`), sorted; none where there is no project."""
    try:
        return stack_names(find_project(chosen) / "stacks" / stack)
    except (Failure, OSError):
        return ()


def _checked(directory: Path) -> Path:
    if (directory / CLUSTERS).is_dir():
        return directory
    raise Failure(
        f"{directory} is no corral project: it holds no {CLUSTERS} - name the directory above stacks/",
        ExitCode.WRONG_INPUT,
    )


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise Failure(
            f"the current directory cannot be used: {error.strerror} - go to another one, or name the project with"
            " --project DIR",
            ExitCode.WRONG_INPUT,
        ) from None
