"""How many addresses of a zone's subnet a cluster can take, and how many there are. Pure."""

from __future__ import annotations

from corral.model.base import ZonePlan
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.model.markets import InterfaceType

_AWS_FIRST = 4
_AWS_LAST = 1  # AWS keeps the first four, which lie inside the range for heads, and the last address of a subnet
_HOME = 1  # a mount target in every zone
_LUSTRE = 2  # interfaces of a file system of the smallest size; more with more servers


def free_addresses(zone: ZonePlan) -> int:
    """The addresses that AWS hands out in this zone's subnet: not those for heads, not its own."""
    kept = zone.heads.num_addresses if zone.heads else _AWS_FIRST
    return zone.private.num_addresses - kept - _AWS_LAST


def taken_addresses(cluster: ClusterPlan, zone: ZonePlan) -> int:
    """The most addresses that this cluster and its base's home take there, with every node that may run in the zone.

    A head counts in an adopted subnet only; in one of our own it has an address that AWS hands out to nobody.
    """
    nodes = sum(q.max_nodes * _per_node(q) for q in cluster.queues if _offered(q, zone.zone_id))
    systems = sum(_LUSTRE for system in cluster.lustre if system.zone_id == zone.zone_id)
    head = 1 if zone.heads is None and cluster.head.zone_id == zone.zone_id else 0
    return nodes + systems + head + (_HOME if cluster.home else 0)


def _offered(queue: QueuePlan, zone_id: str) -> bool:
    return any(offer.zone_id == zone_id for offer in queue.offers)


def _per_node(queue: QueuePlan) -> int:
    return sum(nic.interface_type is not InterfaceType.EFA_ONLY for nic in queue.nics)
