"""The smallest FSx for Lustre that writes a checkpoint in a wished time and holds what is to be stored."""

from __future__ import annotations

import math
from dataclasses import dataclass

from corral.catalog.lustre import LustreDeployment
from corral.forecast.storage import (
    GIB,
    Clients,
    LustreChoice,
    Rate,
    Way,
    lustre_client_bytes_per_s,
    lustre_rate,
)

_GIB_PER_TIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreSize:
    """A file system, how fast the nodes write it, and how long a checkpoint takes.

    `within_wish` is false where no size is enough, since the nodes cannot give more; the size is then the smallest at
    which they are the limit.
    """

    system: LustreChoice
    rate: Rate
    write_s: float
    within_wish: bool


def lustre_for(
    checkpoint_bytes: float,
    within_s: float,
    deployment: LustreDeployment,
    clients: Clients,
    *,
    stored_bytes: float = 0.0,
    efa: bool = False,
) -> LustreSize:
    """The smallest size of this deployment that AWS offers, for a checkpoint within so many seconds.

    `stored_bytes`: data and all checkpoints that are kept. Raises ValueError for EFA that the deployment lacks.
    """
    rate_gib = _by_rate(checkpoint_bytes / within_s, deployment, clients, efa=efa)
    size_gib = legal_size(max(rate_gib, math.ceil(stored_bytes / GIB)), deployment, efa=efa)
    system = LustreChoice(deployment=deployment, size_gib=size_gib, efa=efa)
    rate = lustre_rate(system, clients, Way.WRITE)
    write_s = rate.seconds(checkpoint_bytes)
    return LustreSize(system=system, rate=rate, write_s=write_s, within_wish=write_s <= within_s * (1 + 1e-9))


def legal_size(size_gib: int, deployment: LustreDeployment, *, efa: bool = False) -> int:
    """The smallest size that AWS offers and that is not below this one. Raises ValueError for EFA that it lacks."""
    smallest, step = deployment.steps(efa=efa)
    return smallest if size_gib <= smallest else math.ceil(size_gib / step) * step


def _by_rate(bytes_per_s: float, deployment: LustreDeployment, clients: Clients, *, efa: bool) -> int:
    """The size whose disks, servers and share of each node reach this rate, or that of the nodes where that is less."""
    _, step = deployment.steps(efa=efa)
    endless = LustreChoice(deployment=deployment, size_gib=step * 10**6, efa=efa)
    per_node = min(bytes_per_s / clients.nodes, lustre_client_bytes_per_s(endless, clients))
    each_tib = min(deployment.disk_write_mbps_per_tib, deployment.network_baseline_mbps_per_tib) * 1e6
    by_disks = math.ceil(per_node * clients.nodes / each_tib * _GIB_PER_TIB - 1e-6)
    by_server = lustre_client_bytes_per_s(LustreChoice(deployment=deployment, size_gib=step, efa=efa), clients)
    servers = math.ceil(per_node / by_server - 1e-9)
    return max(by_disks, (servers - 1) * step + 1)
