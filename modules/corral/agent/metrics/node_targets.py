"""The list of nodes for the head's Prometheus, which follows it without a restart.

Source: Prometheus's documentation, "file_sd_config".
"""

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from corral.agent.cluster.models import SlurmNode
from corral.agent.file_install import Placement, install
from corral.model.monitoring import NODE_METRICS_PORT, NODE_TARGETS
from corral.model.node_names import queue_of


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTargets:
    """Writes the list at each call, if it has changed. `nodes`: the last reading of Slurm; `root`: stands for /."""

    nodes: Callable[[], Sequence[SlurmNode]]
    is_needed: Callable[[], bool]
    root: Path = Path("/")

    def __call__(self) -> None:
        """Write the list where Prometheus reads it."""
        if self.is_needed():
            install((Placement(path=NODE_TARGETS, content=targets(self.nodes()).encode()),), self.root)


def targets(nodes: Iterable[SlurmNode]) -> str:
    """The nodes that have registered, with their names as labels: a new machine of a node continues its series."""
    listed = []
    for node in nodes:
        with suppress(ValueError):  # before a machine has one, the node's address is its name
            address = IPv4Address(node.address)
            if node.registered:
                labels = {"instance": node.name, "node": node.name, "queue": queue_of(node.name)}
                listed.append({"targets": [f"{address}:{NODE_METRICS_PORT}"], "labels": labels})
    return json.dumps(listed, indent=1) + "\n"
