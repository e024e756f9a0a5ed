"""How many addresses of a zone's subnet a cluster can take, and how many there are. Pure."""

from __future__ import annotations

from corral.model.base import ZonePlan
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.model.markets import InterfaceType

_AWS_FIRST = 4
_AWS_LAST = 1  # AWS keeps the first four, which lie inside the range for heads, and the last address of a subnet
_LUSTRE = 2  # interfaces of a file system of the smallest size; more with more servers


def free_addresses(zone: ZonePlan) -> int:
    """The addresses that AWS hands out in this zone's subnet: not those for heads, not its own."""
    kept = zone.heads.num_addresses if zone.heads else _AWS_FIRST
    return zone.private.num_addresses - kept - _AWS_LAST


def taken_addresses(cluster: ClusterPlan, zone_id: str) -> int:
    """The most addresses that this cluster takes there: every node of every queue that may run in the zone."""
    nodes = sum(q.max_nodes * _per_node(q) for q in cluster.queues if _offered(q, zone_id))
    return nodes + sum(_LUSTRE for system in cluster.lustre if system.zone_id == zone_id)


def _offered(queue: QueuePlan, zone_id: str) -> bool:
    return any(offer.zone_id == zone_id for offer in queue.offers)


def _per_node(queue: QueuePlan) -> int:
    return sum(nic.interface_type is not InterfaceType.EFA_ONLY for nic in queue.nics)
