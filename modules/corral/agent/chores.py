"""What the keeper's process does beside answering Slurm: things that are right a little later as well.

Each runs in a thread of its own, so that no node waits for it, and none for another: an apply that hangs may not keep a
cluster from ending. What fails is told and tried again at its next time.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from corral.agent.errors import AgentError
from corral.agent.turn import Seen

log = logging.getLogger("corral.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chore:
    """`act` is done each so many seconds, the first time after `first_s`."""

    name: str
    each_s: float
    act: Callable[[], object]
    first_s: float = 0.0


def start(chores: Sequence[Chore]) -> None:
    """From now on does them, as long as the process lives."""
    for chore in chores:
        threading.Thread(target=_live, args=(chore,), name=chore.name, daemon=True).start()


def _live(chore: Chore) -> None:
    time.sleep(chore.first_s)
    while True:
        do(chore)
        time.sleep(chore.each_s)


def do(chore: Chore) -> None:
    """Does one now; what fails is a line."""
    try:
        chore.act()
    except AgentError as error:
        log.error("%s: %s", chore.name, error)
    except Exception:  # whatever nobody has thought of must not end the others
        log.exception("%s failed", chore.name)


@dataclass(kw_only=True)
class Names:
    """Keeps the cluster's zone to what there is. `seen`: what the keeper saw last; None before its first look.

    `prune` asks for the addresses itself, when it knows what is in the zone: the keeper names nodes meanwhile.
    """

    seen: Callable[[], Seen | None]
    prune: Callable[[Callable[[], Mapping[str, str]]], object]
    _known: Mapping[str, str] | None = None

    def __call__(self) -> None:
        """Asks Route 53 only where something has changed since the last time that it did what it was asked."""
        if (seen := self.seen()) is None or seen.addresses == self._known:
            return
        self.prune(lambda: (self.seen() or seen).addresses)
        self._known = seen.addresses  # what came since is looked at the next time


@dataclass(kw_only=True)
class Switches:
    """Tells Slurm where in the network the machines of nodes are that have come up. `place`: of instances by node."""

    seen: Callable[[], Seen | None]
    place: Callable[[Mapping[str, str]], object]
    _known: set[str] = field(default_factory=set)

    def __call__(self) -> None:
        if (seen := self.seen()) is None:
            return
        self._known &= set(seen.running.values())
        if new := {node: one for node, one in seen.running.items() if one not in self._known}:
            self.place(new)
            self._known.update(new.values())
