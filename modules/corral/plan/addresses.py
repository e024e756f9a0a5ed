"""The addresses in a zone's subnet, and how many of them nodes and file systems use. Pure."""

from __future__ import annotations

from math import ceil

from corral.catalog.aws.lustre import find_lustre_deployment, metadata_iops
from corral.model.base import ZonePlan
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.model.enums import InterfaceType
from corral.model.lustre import LustrePlan

_AWS_FIRST = 4
_AWS_LAST = 1  # AWS reserves the last address of a subnet, and the first four, which are inside the range for heads
_HOME = 1  # one mount target per zone
_METADATA_SERVER_IOPS = 12_000


def free_addresses(zone: ZonePlan) -> int:
    """Return how many addresses AWS can assign in this zone's subnet: all but its own and the range for heads."""
    kept = zone.heads.num_addresses if zone.heads else _AWS_FIRST
    return zone.private.num_addresses - kept - _AWS_LAST


def fixed_addresses(cluster: ClusterPlan, zone: ZonePlan) -> int:
    """Return how many addresses file systems of the cluster and its base, head and login nodes use in this zone.

    So does an internal load balancer.

    The head counts only in an adopted subnet; in corral's own, its address is reserved.
    """
    systems = sum(lustre_addresses(system) for system in cluster.lustre if system.zone_id == zone.zone_id)
    head = 1 if zone.heads is None and cluster.head.zone_id == zone.zone_id else 0
    logins = sum(one == zone.zone_id for one in cluster.login.zones.values()) if cluster.login else 0
    return systems + head + logins + _balancers(cluster, zone) + (_HOME if cluster.home else 0)


def _balancers(cluster: ClusterPlan, zone: ZonePlan) -> int:
    """An internal load balancer has an address in each of its zones; the others' are in the public subnet."""
    balancer = cluster.login.load_balancer if cluster.login else None
    return int(balancer is not None and balancer.is_internal and zone.zone_id in balancer.zones)


def node_addresses(queue: QueuePlan) -> int:
    """Return the number of addresses of one node: one for each interface that is not EFA-only."""
    return sum(nic.interface_type is not InterfaceType.EFA_ONLY for nic in queue.nics)


def max_addresses(cluster: ClusterPlan, zone: ZonePlan) -> int:
    """Return the most addresses that this cluster and its base's home can use in this zone, with all nodes running."""
    offered = (queue for queue in cluster.queues if any(offer.zone_id == zone.zone_id for offer in queue.offers))
    return sum(queue.max_nodes * node_addresses(queue) for queue in offered) + fixed_addresses(cluster, zone)


def lustre_addresses(system: LustrePlan) -> int:
    """Return the number of addresses of a file system: one per storage server and per metadata server.

    A storage server holds one size step of its deployment: 2.4 TiB on SSD, 6 or 1.8 TiB on HDD, 4.8 to 38.4 TiB with
    EFA. With configured metadata IOPS, there is one metadata server per 12,000. Source: FSx for Lustre User Guide,
    "Deployment and storage class options", "IP addresses for file systems" (read in a copy; a user counted 1, 2 and 3
    metadata servers at 12,000, 24,000 and 36,000).
    """
    deployment = find_lustre_deployment(
        system.deployment, storage=system.disks, throughput_mbps_per_tib=system.throughput_mbps_per_tib
    )
    _, server_gib = deployment.steps(efa=system.efa)
    return ceil(system.size_gib / server_gib) + _metadata_servers(system)


def _metadata_servers(system: LustrePlan) -> int:
    iops = metadata_iops().included(system.size_gib) if system.efa else 0  # automatic mode is used only with EFA
    return ceil(max(system.metadata_iops or iops, 1) / _METADATA_SERVER_IOPS)
