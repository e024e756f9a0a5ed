"""What the keeper's process does over and over: newer records, notes, the comparison, jobs that are to start again.

Whatever one of them raises is a line, and the others go on: a keeper that has ended launches nothing and ends nothing.
"""

import logging
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

from corral.agent.errors import AgentError
from corral.agent.events import Journal
from corral.agent.rebooted import Reboots
from corral.agent.records import Records
from corral.agent.requeued import Delayed, closed, release
from corral.agent.saving import Saving
from corral.agent.spool import notes, remove
from corral.agent.turn import Keeper
from corral.agent.world import SlurmNode

LOOK_EACH_S, SOON_S = 5.0, 1.0  # at jobs that wait to start again; sooner where there are some
AGAIN_S = 1.0  # half of the time until what failed is tried again, at first

log = logging.getLogger("corral.agent")


@dataclass(kw_only=True)
class Rounds:
    """`turn_s`: how long a note can lie where its bell was not heard. `sign`: the file that is touched at each round.

    `records`: None where nobody installs others.
    """

    keeper: Keeper
    journal: Journal
    spool: Path
    turn_s: float
    sign: Path
    records: Records | None = None
    clock: Callable[[], float] = time.monotonic
    _due: float = 0.0
    _compare_at: float = 0.0
    _again_s: float = AGAIN_S
    _left: frozenset[str] = frozenset()
    _delayed: Delayed = Delayed()  # noqa: RUF009  frozen
    _shown: dict[Callable[[Sequence[SlurmNode]], None], Sequence[SlurmNode]] = field(default_factory=dict)
    _problems: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._reboots, self._saving = Reboots(journal=self.journal), Saving()
        self._compare_at = self.clock()

    def live(self, line: socket.socket) -> None:
        """Goes round when the bell rings, and when something is due; for ever."""
        self._compare_at += self.turn_s
        while True:
            self.go()
            line.settimeout(self._rest_s())
            with suppress(TimeoutError, BlockingIOError):
                line.recv(1)
                self._due = 0.0

    def go(self) -> None:
        """One round: what is due."""
        for name, act in (
            ("read the records", self._follow),
            ("answer notes", self._answer),
            ("compare Slurm and EC2", self._compare),
            ("let slurmctld save what it knows", partial(self._show, self._saving.look)),
            ("look at machines that have booted again", partial(self._show, self._reboots.look)),
            ("look at waiting jobs", self._release),
        ):
            self._do(name, act)
        with suppress(OSError):  # who asks sees an older sign
            self.sign.touch()

    def _do(self, name: str, act: Callable[[], bool]) -> None:
        """Told once, until it has gone well: the next round may fail of the same. `act`: False where it was not due."""
        try:
            if act():
                self._problems.pop(name, None)
        except Exception as error:  # whatever nobody has thought of: the next round sees another world
            if self._problems.get(name) != str(error):
                known = isinstance(error, AgentError | OSError)
                log.error("%s: %s", name, error) if known else log.exception("%s failed", name)
            self._problems[name] = str(error)

    def _follow(self) -> bool:
        if self.records and (newer := self.records.newer()):
            self.keeper.plan, self.keeper.deployed = newer
        return True

    def _answer(self) -> bool:
        if self.clock() < self._due:
            return False
        self._due = self.clock() + self.turn_s  # also where it fails
        self._left = self.keeper.answer(tuple(notes(self.spool)), partial(remove, spool=self.spool))
        # What failed is tried again soon, then less often: EC2 that is asked too much is not asked more.
        self._again_s = min(2 * self._again_s, self.turn_s) if self._left else AGAIN_S
        self._due = self.clock() + (self._again_s if self._left else self.turn_s)
        return True

    def _compare(self) -> bool:
        if self.clock() < self._compare_at:
            return False
        try:
            self.keeper.compare(self._left, tuple(notes(self.spool)))
        finally:
            self._compare_at = self.clock() + self.turn_s
        return True

    def _show(self, look: Callable[[Sequence[SlurmNode]], None]) -> bool:
        """Shows it the nodes of the last comparison, once; again where it fails."""
        nodes = self.keeper.nodes
        if nodes is self._shown.get(look, ()):
            return False
        look(nodes)
        self._shown[look] = nodes
        return True

    def _release(self) -> bool:
        if self.keeper.is_closing:
            return False
        waited = self._delayed.since.keys()
        shut = closed(self.keeper.plan.queues, self.keeper.memory.cold, time.time())
        self._delayed = release(self._delayed, shut, datetime.now(), self.journal)
        if self._delayed.since.keys() - waited:
            self._compare_at = 0.0  # a machine that fell silent is ended before its jobs run elsewhere
        return True

    def _rest_s(self) -> float:
        look_s = SOON_S if self._delayed.since else LOOK_EACH_S
        return max(0.0, min(self.turn_s, self._due - self.clock(), look_s))
