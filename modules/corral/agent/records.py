"""The records that a head works by, as `apply` last installed them: read anew when their files are others."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from corral.agent.errors import AgentError
from corral.agent.machine import records_in
from corral.model.cluster import ClusterPlan
from corral.model.deployed import Deployed

SETTLED_S = 0.5  # `apply` installs one file after the other; a plan without its templates would be refused by EC2


class RecordsError(AgentError):
    """Records that cannot be read. What was read before goes on to count."""


@dataclass(kw_only=True)
class Records:
    """`directory`: where cluster.json and deployed.json are. Those that are there when this is made are known."""

    directory: Path
    sleep: Callable[[float], object] = time.sleep

    def __post_init__(self) -> None:
        self._known = self._marks()

    def newer(self) -> tuple[ClusterPlan, Deployed] | None:
        """What there is now, if it is another than before. Raises RecordsError; then it is read again."""
        if (marks := self._marks()) == self._known:
            return None
        before = None
        while before != marks:
            self.sleep(SETTLED_S)
            before, marks = marks, self._marks()
        try:
            found = records_in(self.directory)
        except (AgentError, OSError) as error:
            raise RecordsError(f"{error}; the former ones count") from error
        self._known = marks
        return found

    def _marks(self) -> tuple[tuple[int, int] | None, ...]:
        """A file that is replaced is another one, whatever its time."""
        return tuple(_mark(self.directory / name) for name in ("cluster.json", "deployed.json"))


def _mark(file: Path) -> tuple[int, int] | None:
    try:
        held = os.stat(file)  # noqa: PTH116
    except OSError:
        return None
    return held.st_mtime_ns, held.st_ino
