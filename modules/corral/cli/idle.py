"""Whether anybody works on the stacks of a box: what empties it must not pull the ground from under them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from corral.engine.errors import EngineError
from corral.engine.locks import file_holders, held, state_directory


@contextmanager
def all_stacks_held(backend: Path, say: Callable[[str], None]) -> Iterator[None]:
    """A block during which no corral begins to work on a stack of this backend of files.

    Raises EngineError, which names the process, where a corral or a Pulumi is at work on one.
    """
    with ExitStack() as locks:
        for directory in sorted(state_directory(f"file://{backend}").glob("*.*/")):
            what = directory.name.removeprefix("corral-").replace(".", " ", 1)
            locks.enter_context(held(directory / "lock", what, wait=False, say=say))
        _require_no_pulumi(backend / ".pulumi" / "locks" / "organization")
        yield


def _require_no_pulumi(locks: Path) -> None:
    for directory in sorted(locks.glob("*/*/")):
        for holder in file_holders(directory):
            if holder.lives:
                what = f"{directory.parent.name.removeprefix('corral-')} {directory.name}"
                since = f"{holder.since.astimezone():%H:%M:%S}"
                who = f"process {holder.pid} of {holder.user}, since {since}"
                raise EngineError(f"a Pulumi ({who}) is at work on {what}")
