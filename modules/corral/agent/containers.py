"""Compile what runs containers on this machine, as the cluster's plan says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from corral.agent.config.file_placements import CONTAINERS
from corral.agent.host.base import Host
from corral.agent.host.packages import Package
from corral.model.cluster import ClusterPlan, QueuePlan

BUILD = f"{CONTAINERS}/build.sh"


def compile_containers(
    plan: ClusterPlan, packages: Sequence[Package], host: Host, queue: QueuePlan | None = None
) -> None:
    """Install these packages and compile, unless that is done; nothing for a cluster without containers.

    `queue`: the queue of a node, whose containers lie on its instance store if it has one. Raises HostError.
    """
    if not plan.containers.are_used:
        return
    host.install(packages)
    host.build(Path(BUILD), *((f"{queue.nvme_mount}/enroot",) if queue and queue.nvme_mount else ()))
