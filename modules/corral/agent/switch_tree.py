"""topology.conf on the head, and the line that makes slurmctld read it: both are there, or neither is. A chore.

With the line and no file slurmctld does not start, with an empty file that of 25.11 crashes, and to a node that is not
in the file no job comes. So line and file are written together, and whoever writes nodes into slurm.conf uses `retold`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from corral.agent.alone import alone
from corral.agent.apply import LOCK, await_slurmctld
from corral.agent.errors import AgentError
from corral.agent.hosts import Host, slurmctld
from corral.agent.install import Placement, install
from corral.agent.leaving import nodes_of
from corral.agent.places import NO_TOPOLOGY, TOPOLOGY_PLUGIN
from corral.agent.topology import Switches, log, paths_of, static_nodes, topology_conf
from corral.agent.tree_file import TREE
from corral.model.cluster import ClusterPlan

REST_S = 600.0  # between two changes: machines come one after the other, and each change goes to all nodes
LOOK_EACH_S = 30.0
_NODES = re.compile(r"^\s*NodeName=", re.IGNORECASE | re.MULTILINE)  # nodes of somebody else's, not in our tree
_PLUGIN = b"# Managed by corral: do not edit. It goes with topology.conf.\nTopologyPlugin=topology/tree\n"


@dataclass(kw_only=True)
class SwitchTree:
    """Tells slurmctld where the nodes of static queues are. `paths`: the switches above nodes, as they are known."""

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
        """Changes what has to be, at most every ten minutes. Raises AgentError when it is as it was before."""
        if self._changed is not None and self.clock() < self._changed + REST_S:
            return
        self.lock.parent.mkdir(parents=True, exist_ok=True)
        with alone(self.lock) as first:  # `apply` writes these files too
            if not first or (wanted := self._wanted()) == (before := self._text()):
                return
            self._changed = self.clock()
            try:
                self._tell(wanted, was_on=before is not None)
            except AgentError:
                self._tell(before, was_on=not before)
                raise

    def _wanted(self) -> str | None:
        plan, own = self.plan(), self.root / "etc/slurm/own.conf"
        static = static_nodes(plan)
        if not static or (own.exists() and _NODES.search(own.read_text(encoding="utf-8"))):
            return None
        nodes = tuple(nodes_of((self.root / "etc/slurm/slurm.conf").read_text(encoding="utf-8")))
        known = self.paths([node for node in static if node in nodes])
        return topology_conf(plan, known, nodes, is_on=self._text() is not None)

    def _text(self) -> str | None:
        file = self.root / TREE.lstrip("/")
        return file.read_text(encoding="utf-8") if file.exists() else None

    def _tell(self, text: str | None, *, was_on: bool) -> None:
        plugin = Placement(path=TOPOLOGY_PLUGIN, content=_PLUGIN if text else NO_TOPOLOGY)
        if text:
            install((Placement(path=TREE, content=text.encode()), plugin), self.root)
        else:
            install((plugin,), self.root)
            (self.root / TREE.lstrip("/")).unlink(missing_ok=True)
        log.info("topology.conf: %s", "written" if text else "taken away")
        if was_on != bool(text):
            self.host.restart(slurmctld(self.plan().image.slurm_sbin, str(self.state / "slurmctld")))
            await_slurmctld(self.run)
        self.run(("scontrol", "reconfigure"))  # also after a restart: it sends the files to the nodes
        await_slurmctld(self.run)
