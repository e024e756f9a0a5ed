"""Periodic tasks of the autoscaler's process about its machines, for which no node waits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from corral.agent.autoscaler.reconciler import ClusterSnapshot


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
