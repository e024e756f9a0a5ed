"""How many addresses there are in a zone's subnet, and how many a machine or a file system takes of them. Pure."""

from __future__ import annotations

from math import ceil

from corral.catalog.lustre import find_lustre_deployment, metadata_iops
from corral.model.base import ZonePlan
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.model.lustre import LustrePlan
from corral.model.markets import InterfaceType

_AWS_FIRST = 4
_AWS_LAST = 1  # AWS keeps the first four, which lie inside the range for heads, and the last address of a subnet
_HOME = 1  # a mount target in every zone
_METADATA_SERVER_IOPS = 12_000


def free_addresses(zone: ZonePlan) -> int:
    """The addresses that AWS hands out in this zone's subnet: not those for heads, not its own."""
    kept = zone.heads.num_addresses if zone.heads else _AWS_FIRST
    return zone.private.num_addresses - kept - _AWS_LAST


def standing_addresses(cluster: ClusterPlan, zone: ZonePlan) -> int:
    """What the cluster takes there before any node: its file systems, its base's, and the head.

    A head counts in an adopted subnet only; in one of our own it has an address that AWS hands out to nobody.
    """
    systems = sum(lustre_addresses(system) for system in cluster.lustre if system.zone_id == zone.zone_id)
    head = 1 if zone.heads is None and cluster.head.zone_id == zone.zone_id else 0
    return systems + head + (_HOME if cluster.home else 0)


def node_addresses(queue: QueuePlan) -> int:
    """The addresses of one node: one for each of its interfaces that is not for EFA alone."""
    return sum(nic.interface_type is not InterfaceType.EFA_ONLY for nic in queue.nics)


def taken_addresses(cluster: ClusterPlan, zone: ZonePlan) -> int:
    """The most addresses that this cluster and its base's home take there, with every node that may run in the zone."""
    offered = (queue for queue in cluster.queues if any(offer.zone_id == zone.zone_id for offer in queue.offers))
    return sum(queue.max_nodes * node_addresses(queue) for queue in offered) + standing_addresses(cluster, zone)


def lustre_addresses(system: LustrePlan) -> int:
    """The addresses that a file system takes in its subnet: one for each storage server and each metadata server.

    A storage server holds as much as the step in which its deployment grows: 2.4 TiB on SSD, 6 or 1.8 TiB on HDD,
    4.8 to 38.4 TiB with EFA. Where metadata IOPS are configured, there is a metadata server for each 12,000. Source:
    FSx for Lustre User Guide, "Deployment and storage class options", "IP addresses for file systems" (read in a copy;
    a user counted 1, 2 and 3 metadata servers at 12,000, 24,000 and 36,000).
    """
    deployment = find_lustre_deployment(
        system.deployment, storage=system.disks, throughput_mbps_per_tib=system.throughput_mbps_per_tib
    )
    _, server_gib = deployment.steps(efa=system.efa)
    return ceil(system.size_gib / server_gib) + _metadata_servers(system)


def _metadata_servers(system: LustrePlan) -> int:
    iops = metadata_iops().included(system.size_gib) if system.efa else 0  # only with EFA do we leave it to FSx
    return ceil(max(system.metadata_iops or iops, 1) / _METADATA_SERVER_IOPS)
