"""Periodic tasks of the autoscaler's process that no node waits for.

Each runs in its own thread, so that an apply that hangs does not block the end of the cluster. A failure is logged,
and the task runs again at its next time.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from corral.agent.autoscaler.reconciler import ClusterSnapshot
from corral.agent.errors import AgentError

log = logging.getLogger("corral.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundTask:
    """`act` runs every `every_s` seconds, the first time after `first_s`."""

    name: str
    every_s: float
    act: Callable[[], object]
    first_s: float = 0.0


def start_tasks(tasks: Sequence[BackgroundTask]) -> None:
    """Start each task in its own thread, for the rest of the process."""
    for task in tasks:
        threading.Thread(target=_run_forever, args=(task,), name=task.name, daemon=True).start()


def _run_forever(task: BackgroundTask) -> None:
    time.sleep(task.first_s)
    while True:
        run_task(task)
        time.sleep(task.every_s)


def run_task(task: BackgroundTask) -> None:
    """Run a task once. A failure is logged."""
    try:
        task.act()
    except AgentError as error:
        log.error("%s: %s", task.name, error)
    except Exception:  # an unexpected error must not end the thread
        log.exception("%s failed", task.name)


@dataclass(kw_only=True)
class ZoneCleanup:
    """Removes the names of nodes without a machine from the cluster's zone.

    `snapshot`: the autoscaler's last; None before its first. `prune` calls for the addresses after it has read the
    zone, because the autoscaler publishes names meanwhile.
    """

    snapshot: Callable[[], ClusterSnapshot | None]
    prune: Callable[[Callable[[], Mapping[str, str]]], object]
    _known: Mapping[str, str] | None = None

    def __call__(self) -> None:
        """Call Route 53 only if the addresses have changed since the last success."""
        if (seen := self.snapshot()) is None or seen.addresses == self._known:
            return
        self.prune(lambda: (self.snapshot() or seen).addresses)
        self._known = seen.addresses  # newer ones are compared next time


@dataclass(kw_only=True)
class NodeSwitches:
    """Writes the network position of new machines into Slurm. `write`: takes instance ids by node."""

    snapshot: Callable[[], ClusterSnapshot | None]
    write: Callable[[Mapping[str, str]], object]
    _known: set[str] = field(default_factory=set)

    def __call__(self) -> None:
        if (seen := self.snapshot()) is None:
            return
        self._known &= set(seen.running.values())
        if new := {node: one for node, one in seen.running.items() if one not in self._known}:
            self.write(new)
            self._known.update(new.values())
