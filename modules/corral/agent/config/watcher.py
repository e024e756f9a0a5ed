"""Reload the head's records (cluster.json, deployed.json) when `apply` has installed newer ones."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from corral.agent.errors import AgentError
from corral.agent.runtime_context import records_in
from corral.model.cluster import ClusterPlan
from corral.model.deployed import Deployed

SETTLED_S = 0.5  # `apply` installs one file after the other; a plan without its templates could not launch


class RecordsError(AgentError):
    """The records cannot be read. The former ones stay in effect."""


@dataclass(kw_only=True)
class RecordsWatcher:
    """`directory`: of cluster.json and deployed.json. The files at construction count as known."""

    directory: Path
    sleep: Callable[[float], object] = time.sleep

    def __post_init__(self) -> None:
        self._known = self._marks()

    def newer(self) -> tuple[ClusterPlan, Deployed] | None:
        """The records if they have changed since the last call. Raises RecordsError; the next call reads them again."""
        if (marks := self._marks()) == self._known:
            return None
        before = None
        while before != marks:
            self.sleep(SETTLED_S)
            before, marks = marks, self._marks()
        try:
            found = records_in(self.directory)
        except (AgentError, OSError) as error:
            raise RecordsError(f"{error}; the former records stay in effect") from error
        self._known = marks
        return found

    def _marks(self) -> tuple[tuple[int, int] | None, ...]:
        """The time and inode of each file: a replaced file has another inode."""
        return tuple(_mark(self.directory / name) for name in ("cluster.json", "deployed.json"))


def _mark(file: Path) -> tuple[int, int] | None:
    try:
        held = os.stat(file)  # noqa: PTH116
    except OSError:
        return None
    return held.st_mtime_ns, held.st_ino
