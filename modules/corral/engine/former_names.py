"""Stacks that live on in the backend without a file: an environment's former name, or another project's stack.

The two cannot be told apart: a backend knows a stack by its name alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from corral.engine import file_backend
from corral.engine.bucket_backend import has_stack_in_bucket
from corral.engine.errors import EngineError
from corral.engine.stack import Stack
from corral.model.stack_files import stack_names


def without_file(stacks: Sequence[Stack]) -> tuple[str, ...]:
    """The names, sorted, under which the backend holds resources of these stacks' projects that have no file."""
    return tuple(sorted({name for one in stacks for name in {*one.living()} - {*stack_names(one.directory)}}))


def lost_line(names: Sequence[str], new: str, *, in_box: bool) -> str:
    """The line that tells of these names, before an environment is made that may be one of them under a new name."""
    who, one = ", ".join(f"'{name}'" for name in names), len(names) == 1
    there = f"{'the box' if in_box else 'this backend'} also holds {who}, of which this project has no file"
    cost = "" if in_box else " it lives on and costs on;" if one else " they live on and cost on;"
    whose = f"{'it is' if one else 'each is'} another project's, or an environment of this one under its former name"
    way = f"if '{new}' is {'its' if one else 'such a'} new name, rename the files back and take the old one down first"
    return f"{there}:{cost} {whose} - {way}"


def with_its_state(
    error: EngineError, environment: str, url: str, environ: Mapping[str, str], account_option: str = ""
) -> EngineError:
    """The error that an environment is unknown, with what to do where the backend still has its state.

    `account_option`: as `Stack` has it.
    """
    if not _has_state(url, environ, environment):
        return error
    hint = (
        f"the state of a cluster '{environment}' is still in the backend: where its files were renamed, give them"
        f" their former names again (stacks/cluster/Pulumi.{environment}.yaml and its base's), then"
        f" `corral down {environment}{account_option}`"
    )
    return EngineError(error.sentence, (*error.hints, hint), error.code)


def _has_state(url: str, environ: Mapping[str, str], environment: str) -> bool:
    if root := file_backend.directory(url):
        return file_backend.has_stack(root, "corral-cluster", environment)
    return has_stack_in_bucket(url, environ, "corral-cluster", environment)
