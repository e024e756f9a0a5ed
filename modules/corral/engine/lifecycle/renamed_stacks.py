"""Finds stacks in the backend that have no file in the project: renamed environments, or stacks of another project.

The two cannot be distinguished, since a backend knows a stack only by its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from corral.engine.backend import file_backend
from corral.engine.backend.bucket_backend import has_stack_in_bucket
from corral.engine.engine_errors import EngineError
from corral.engine.pulumi.stack import Stack
from corral.model.pulumi_files import stack_names


def stacks_without_file(stacks: Sequence[Stack]) -> tuple[str, ...]:
    """The sorted names of stacks that hold resources in the backend but have no file in these stacks' projects."""
    return tuple(
        sorted({name for one in stacks for name in {*one.names_with_resources()} - {*stack_names(one.directory)}})
    )


def renamed_stacks_line(names: Sequence[str], new: str, *, in_box: bool) -> str:
    """The warning about these stacks before an environment is created that may be one of them, renamed."""
    listed, one = ", ".join(f"'{name}'" for name in names), len(names) == 1
    backend = "the box" if in_box else "the backend"
    cost = "" if in_box else f"; {'it still costs' if one else 'they still cost'} money"
    fix = f"if '{new}' is {'its' if one else 'a'} new name, rename the files back and run `corral down` first"
    owner = f"another project's, or {'an environment' if one else 'environments'} of this one under a former name"
    return f"{backend} also holds {listed}, without a file in this project{cost} ({owner}) - {fix}"


def with_state_hint(
    error: EngineError, environment: str, url: str, environ: Mapping[str, str], account_option: str = ""
) -> EngineError:
    """The error about an unknown environment, with a hint if the backend still has its state.

    `account_option`: see `Stack`.
    """
    if not _has_state(url, environ, environment):
        return error
    hint = (
        f"the backend still holds cluster '{environment}': if its files were renamed, rename them back"
        f" (stacks/cluster/Pulumi.{environment}.yaml and that of its base), then run"
        f" `corral down {environment}{account_option}`"
    )
    return EngineError(error.sentence, (*error.hints, hint), error.code)


def _has_state(url: str, environ: Mapping[str, str], environment: str) -> bool:
    if root := file_backend.directory(url):
        return file_backend.has_stack(root, "corral-cluster", environment)
    return has_stack_in_bucket(url, environ, "corral-cluster", environment)
