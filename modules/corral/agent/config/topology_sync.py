"""Keep topology.conf and the TopologyPlugin line consistent on the head: both exist, or neither. A background task.

With the line but no file, slurmctld does not start; with an empty file, 25.11 crashes; a node that is missing from the
file gets no jobs. So line and file are written together, and code that writes nodes into slurm.conf calls
`topology_conf_for`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from corral.agent.config.apply import LOCK, await_slurmctld
from corral.agent.config.file_placements import NO_TOPOLOGY, TOPOLOGY_PLUGIN
from corral.agent.config.merge import nodes_of
from corral.agent.config.topology_conf import TREE
from corral.agent.errors import AgentError
from corral.agent.file_install import Placement, install
from corral.agent.host.base import Host, slurmctld
from corral.agent.process_lock import exclusive
from corral.agent.topology.rank_order import Switches, log, nodes_of_static_queues, paths_of, topology_conf
from corral.model.cluster import ClusterPlan

MIN_INTERVAL_S = 600.0  # between changes: machines start one after the other, and each change is sent to all nodes
POLL_EVERY_S = 30.0
_NODES = re.compile(r"^\s*NodeName=", re.IGNORECASE | re.MULTILINE)  # a user's own nodes, which the tree lacks
_PLUGIN = b"# Managed by corral: do not edit. Required by topology.conf.\nTopologyPlugin=topology/tree\n"


@dataclass(kw_only=True)
class TopologySync:
    """Keeps slurmctld's topology of static queues up to date. `paths`: returns the known switches above nodes."""

    plan: Callable[[], ClusterPlan]
    host: Host
    run: Callable[[Sequence[str]], str]
    paths: Callable[[Sequence[str]], Mapping[str, Switches]] = paths_of
    root: Path = Path("/")
    state: Path = Path("/var/lib/corral")
    lock: Path = LOCK
    clock: Callable[[], float] = field(default=time.monotonic)
    _changed: float | None = None

    def __call__(self) -> None:
        """Apply a changed topology, at most every ten minutes. On failure restore the old one and raise AgentError."""
        if self._changed is not None and self.clock() < self._changed + MIN_INTERVAL_S:
            return
        self.lock.parent.mkdir(parents=True, exist_ok=True)
        with exclusive(self.lock) as first:  # `apply` writes these files too
            if not first or (wanted := self._wanted()) == (before := self._text()):
                return
            self._changed = self.clock()
            try:
                self._apply(wanted, was_on=before is not None)
            except AgentError:
                self._apply(before, was_on=not before)
                raise

    def _wanted(self) -> str | None:
        plan, own = self.plan(), self.root / "etc/slurm/own.conf"
        static = nodes_of_static_queues(plan)
        if not static or (own.exists() and _NODES.search(own.read_text(encoding="utf-8"))):
            return None
        nodes = tuple(nodes_of((self.root / "etc/slurm/slurm.conf").read_text(encoding="utf-8")))
        known = self.paths([node for node in static if node in nodes])
        return topology_conf(plan, known, nodes, is_on=self._text() is not None)

    def _text(self) -> str | None:
        file = self.root / TREE.lstrip("/")
        return file.read_text(encoding="utf-8") if file.exists() else None

    def _apply(self, text: str | None, *, was_on: bool) -> None:
        plugin = Placement(path=TOPOLOGY_PLUGIN, content=_PLUGIN if text else NO_TOPOLOGY)
        if text:
            install((Placement(path=TREE, content=text.encode()), plugin), self.root)
        else:
            install((plugin,), self.root)
            (self.root / TREE.lstrip("/")).unlink(missing_ok=True)
        log.info("topology.conf: %s", "written" if text else "removed")
        if was_on != bool(text):
            self.host.restart(slurmctld(self.plan().image.slurm_sbin, str(self.state / "slurmctld")))
            await_slurmctld(self.run)
        self.run(("scontrol", "reconfigure"))  # also after a restart: it sends the files to the nodes
        await_slurmctld(self.run)
