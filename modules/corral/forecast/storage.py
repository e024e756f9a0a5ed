"""How fast nodes read and write FSx for Lustre, EFS and S3, what limits them, and what the storage costs.

Rates are the sustained ones: credits for bursts are used up by large checkpoints, and how many there are is not known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from corral.catalog.lustre import LustreDeployment
from corral.catalog.storage import efs_limits, lustre_client_limits, s3_limits
from corral.forecast.bill import Item
from corral.forecast.money import HOURS_PER_MONTH, Usd
from corral.forecast.prices import PriceList, Service

GIB = 2**30
_BYTES_PER_GBIT = 1e9 / 8
_GIB_PER_TIB = 1024


class Way(StrEnum):
    """Into the storage or out of it."""

    READ = "read"
    WRITE = "write"


class Interface(StrEnum):
    """How a node reaches Lustre: over its plain network, EFA, or EFA with GPUDirect Storage."""

    PLAIN = "plain"
    EFA = "efa"
    GDS = "gds"


class Limit(StrEnum):
    """What a rate is bounded by: disks, the servers' network, nodes, or a bound of the service for all together."""

    DISKS = "disks"
    SERVERS = "servers"
    NODES = "nodes"
    SERVICE = "service"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Bytes a second, and what does not let them be more."""

    bytes_per_s: float
    limit: Limit

    def seconds(self, size_bytes: float) -> float:
        """How long so many bytes take."""
        return size_bytes / self.bytes_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Nodes that read or write at the same time, each with a network of so many Gbit/s for it."""

    nodes: int
    network_gbps: float
    interface: Interface = Interface.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreChoice:
    """A file system that can be asked for."""

    deployment: LustreDeployment
    size_gib: int
    efa: bool = False

    @property
    def servers(self) -> int:
        """Its object storage servers: one for each step in which it grows, or the part of one."""
        return math.ceil(self.size_gib / self.deployment.steps(efa=self.efa)[1])


def interface_of(family: str, efa_maximum: int, *, gpu_direct: bool = False) -> Interface:
    """How machines of this family, with so many EFA interfaces, reach a file system with EFA."""
    limits = lustre_client_limits()
    if not efa_maximum or family in limits.no_efa_families:
        return Interface.PLAIN
    return Interface.GDS if gpu_direct and family in limits.gds_families else Interface.EFA


def lustre_rate(system: LustreChoice, clients: Clients, way: Way, *, in_memory: bool = False) -> Rate:
    """What the nodes together read or write. `in_memory`: what is read is in the servers' memory, as new files may be.

    The least of disks, servers' network and nodes. Source: FSx for Lustre user guide, "Performance".
    """
    row, tib = system.deployment, system.size_gib / _GIB_PER_TIB
    disk = row.disk_write_mbps_per_tib if way is Way.WRITE else row.disk_read_mbps_per_tib
    bounds = {
        Limit.NODES: clients.nodes * lustre_client_bytes_per_s(system, clients),
        Limit.DISKS: math.inf if in_memory and way is Way.READ else disk * tib * 1e6,
        Limit.SERVERS: row.network_baseline_mbps_per_tib * tib * 1e6,
    }
    return _least(bounds)


def lustre_client_bytes_per_s(system: LustreChoice, clients: Clients) -> float:
    """The most that one node has of this file system. EFA counts only where both have it."""
    limits = lustre_client_limits()
    interface = clients.interface if system.efa else Interface.PLAIN
    most = {
        Interface.PLAIN: min(limits.plain_gbps, limits.server_gbps * system.servers),
        Interface.EFA: limits.efa_gbps,
        Interface.GDS: limits.gds_gbps,
    }
    return min(clients.network_gbps, most[interface]) * _BYTES_PER_GBIT


def efs_rate(region: str, clients: Clients, way: Way) -> Rate:
    """What the nodes together read or write of an EFS with Elastic throughput, at AWS's quotas."""
    limits = efs_limits()
    fast = region in limits.fast_regions
    read = limits.fast_read_gib_per_s if fast else limits.read_gib_per_s
    write = limits.fast_write_gib_per_s if fast else limits.write_gib_per_s
    client = min(limits.client_mib_per_s * 2**20, clients.network_gbps * _BYTES_PER_GBIT)
    return _least({Limit.NODES: clients.nodes * client, Limit.SERVICE: (read if way is Way.READ else write) * GIB})


def s3_rate(clients: Clients, way: Way, *, connections: int, part_bytes: float, prefixes: int = 1) -> Rate:
    """What the nodes together read or write of S3, each over so many connections, in parts of this size.

    Connections and machines by AWS's guidelines; requests by what one prefix takes from the start.
    """
    limits = s3_limits()
    client = min(
        connections * limits.connection_mb_per_s * 1e6,
        min(limits.client_gbps, clients.network_gbps) * _BYTES_PER_GBIT,
    )
    requests = limits.gets_per_s if way is Way.READ else limits.puts_per_s
    return _least({Limit.NODES: clients.nodes * client, Limit.SERVICE: prefixes * requests * part_bytes})


def lustre_month(system: LustreChoice, prices: PriceList) -> Item:
    """What the file system costs, without metadata IOPS beyond those included, and without backups."""
    return _stored(f"Lustre, {system.deployment.name}", system.size_gib, system.deployment.price_name, prices)


def efs_month(stored_bytes: float, prices: PriceList) -> Item:
    """What so many bytes cost as long as they are on EFS; its traffic is paid for by use."""
    return _stored("EFS", math.ceil(stored_bytes / GIB), Service.EFS_GIB_MONTH, prices)


def s3_month(stored_bytes: float, prices: PriceList) -> Item:
    """What so many bytes cost as long as they are in S3 Standard; requests are paid for by use."""
    return _stored("S3", math.ceil(stored_bytes / GIB), Service.S3_GIB_MONTH, prices)


def _stored(what: str, size_gib: int, service: str, prices: PriceList) -> Item:
    price = prices.service(service)
    usd = Usd.exact(price.usd * size_gib / HOURS_PER_MONTH) if price else None
    return Item(what=what, count=size_gib, unit="GiB", usd_per_hour=usd, source=price.source if price else None)


def _least(bounds: Mapping[Limit, float]) -> Rate:
    """The lowest of these; of equal ones the first."""
    limit = min(bounds, key=lambda name: bounds[name])
    return Rate(bytes_per_s=bounds[limit], limit=limit)
