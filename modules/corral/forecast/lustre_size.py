"""The smallest FSx for Lustre that writes a checkpoint within a target time and holds the stored data."""

from __future__ import annotations

import math
from dataclasses import dataclass

from corral.catalog.aws.lustre import LustreDeployment
from corral.forecast.storage_speed import (
    GIB,
    Direction,
    LustreChoice,
    Rate,
    StorageClients,
    lustre_client_bytes_per_s,
    lustre_rate,
)

_GIB_PER_TIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreSize:
    """A file system, how fast the nodes write it, and how long a checkpoint takes.

    `meets_target`: False if no size suffices because the nodes are the limit; the size is then the smallest at which
    they are.
    """

    system: LustreChoice
    rate: Rate
    write_s: float
    meets_target: bool


def lustre_for(
    checkpoint_bytes: float,
    within_s: float,
    deployment: LustreDeployment,
    clients: StorageClients,
    *,
    stored_bytes: float = 0.0,
    efa: bool = False,
) -> LustreSize:
    """The smallest size of this deployment that AWS offers, for a checkpoint within so many seconds.

    `stored_bytes`: data and all retained checkpoints. Raises ValueError if the deployment lacks the requested EFA.
    """
    rate_gib = _by_rate(checkpoint_bytes / within_s, deployment, clients, efa=efa)
    size_gib = legal_size(max(rate_gib, math.ceil(stored_bytes / GIB)), deployment, efa=efa)
    system = LustreChoice(deployment=deployment, size_gib=size_gib, efa=efa)
    rate = lustre_rate(system, clients, Direction.WRITE)
    write_s = rate.seconds(checkpoint_bytes)
    return LustreSize(system=system, rate=rate, write_s=write_s, meets_target=write_s <= within_s * (1 + 1e-9))


def legal_size(size_gib: int, deployment: LustreDeployment, *, efa: bool = False) -> int:
    """The next size that AWS offers. Raises ValueError if the deployment lacks the requested EFA."""
    smallest, step = deployment.steps(efa=efa)
    return smallest if size_gib <= smallest else math.ceil(size_gib / step) * step


def _by_rate(bytes_per_s: float, deployment: LustreDeployment, clients: StorageClients, *, efa: bool) -> int:
    """The size at which disks, servers and each node reach this rate, or the maximum rate of the nodes."""
    _, step = deployment.steps(efa=efa)
    endless = LustreChoice(deployment=deployment, size_gib=step * 10**6, efa=efa)
    per_node = min(bytes_per_s / clients.nodes, lustre_client_bytes_per_s(endless, clients))
    each_tib = min(deployment.disk_write_mbps_per_tib, deployment.network_baseline_mbps_per_tib) * 1e6
    by_disks = math.ceil(per_node * clients.nodes / each_tib * _GIB_PER_TIB - 1e-6)
    by_server = lustre_client_bytes_per_s(LustreChoice(deployment=deployment, size_gib=step, efa=efa), clients)
    servers = math.ceil(per_node / by_server - 1e-9)
    return max(by_disks, (servers - 1) * step + 1)
