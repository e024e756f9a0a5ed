"""The speed at which nodes read and write FSx for Lustre and EFS, and what limits it.

Rates are sustained ones: large checkpoints exhaust burst credits, whose balance is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from corral.catalog.aws.lustre import LustreDeployment
from corral.catalog.aws.storage import efs_limits, has_lustre_efa, lustre_client_limits

GIB = 2**30
_BYTES_PER_GBIT = 1e9 / 8
_GIB_PER_TIB = 1024


class Direction(StrEnum):
    """The direction of a transfer."""

    READ = "read"
    WRITE = "write"


class Interface(StrEnum):
    """How a node reaches Lustre: over its plain network or EFA."""

    PLAIN = "plain"
    EFA = "efa"


class Bottleneck(StrEnum):
    """What limits a rate: disks, the servers' network, the nodes, or a service quota."""

    DISKS = "disks"
    SERVERS = "servers"
    NODES = "nodes"
    SERVICE = "service"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Bytes per second, and what limits them."""

    bytes_per_s: float
    limit: Bottleneck

    def seconds(self, size_bytes: float) -> float:
        """Seconds for so many bytes."""
        return size_bytes / self.bytes_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageClients:
    """Nodes that read or write at the same time. `network_gbps`: the bandwidth of each for it."""

    nodes: int
    network_gbps: float
    interface: Interface = Interface.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreChoice:
    """A file system that can be declared."""

    deployment: LustreDeployment
    size_gib: int
    efa: bool = False

    @property
    def servers(self) -> int:
        """Its object storage servers: one per size increment, rounded up."""
        return math.ceil(self.size_gib / self.deployment.steps(efa=self.efa)[1])


def interface_of(family: str, efa_maximum: int) -> Interface:
    """The interface through which machines of this family reach a file system with EFA."""
    return Interface.EFA if has_lustre_efa(family, efa_maximum) else Interface.PLAIN


def lustre_rate(system: LustreChoice, clients: StorageClients, way: Direction, *, in_memory: bool = False) -> Rate:
    """The rate of all nodes together. `in_memory`: the servers have the files in memory, as new ones may be.

    The minimum of disks, servers' network and nodes. Source: FSx for Lustre user guide, "Performance".
    """
    row, tib = system.deployment, system.size_gib / _GIB_PER_TIB
    disk = row.disk_write_mbps_per_tib if way is Direction.WRITE else row.disk_read_mbps_per_tib
    bounds = {
        Bottleneck.NODES: clients.nodes * lustre_client_bytes_per_s(system, clients),
        Bottleneck.DISKS: math.inf if in_memory and way is Direction.READ else disk * tib * 1e6,
        Bottleneck.SERVERS: row.network_baseline_mbps_per_tib * tib * 1e6,
    }
    return _least(bounds)


def lustre_client_bytes_per_s(system: LustreChoice, clients: StorageClients) -> float:
    """The maximum rate of one node. EFA counts only if both sides have it."""
    limits = lustre_client_limits()
    interface = clients.interface if system.efa else Interface.PLAIN
    most = {
        Interface.PLAIN: min(limits.plain_gbps, limits.server_gbps * system.servers),
        Interface.EFA: limits.efa_gbps,
    }
    return min(clients.network_gbps, most[interface]) * _BYTES_PER_GBIT


def efs_rate(region: str, clients: StorageClients, way: Direction) -> Rate:
    """The rate of all nodes together on an EFS with Elastic throughput, at AWS's quotas."""
    limits = efs_limits()
    fast = region in limits.fast_regions
    read = limits.fast_read_gib_per_s if fast else limits.read_gib_per_s
    write = limits.fast_write_gib_per_s if fast else limits.write_gib_per_s
    client = min(limits.client_mib_per_s * 2**20, clients.network_gbps * _BYTES_PER_GBIT)
    return _least(
        {Bottleneck.NODES: clients.nodes * client, Bottleneck.SERVICE: (read if way is Direction.READ else write) * GIB}
    )


def _least(bounds: Mapping[Bottleneck, float]) -> Rate:
    """The lowest bound; the first among equals."""
    limit = min(bounds, key=lambda name: bounds[name])
    return Rate(bytes_per_s=bounds[limit], limit=limit)
