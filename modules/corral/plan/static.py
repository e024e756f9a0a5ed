"""Whether the nodes that are always there have a place: addresses for all, and with EFA one zone for those of a queue.

Only what cannot be is a mistake. Where capacity is bought, any number may be had in each of its zones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from math import inf

from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.plan.addresses import free_addresses, node_addresses, standing_addresses
from corral.spec.cluster import ClusterSpec
from corral.spec.errors import SpecError
from corral.spec.queues import QueueSpec


def check_static_nodes(spec: ClusterSpec, cluster: ClusterPlan, base: BasePlan) -> tuple[SpecError, ...]:
    """What is wrong with `nodes.min` of the queues, against the subnets of the base."""
    rooms = {zone.zone_id: max(free_addresses(zone) - standing_addresses(cluster, zone), 0) for zone in base.zones}
    errors = [
        SpecError(file=spec.file, path=f"queues[{number}].nodes.min", message=message)
        for number, (wished, queue) in enumerate(zip(spec.queues, cluster.queues, strict=True))
        for message in _queue(wished, queue, rooms)
    ]
    together = () if errors else _together(cluster, rooms)
    return (*errors, *(SpecError(file=spec.file, path="queues", message=message) for message in together))


def _queue(wished: QueueSpec, queue: QueuePlan, rooms: Mapping[str, int]) -> Iterator[str]:
    places = {zone: _places(wished, queue, zone, rooms[zone]) for zone in _zones(queue)}
    there, most = int(sum(places.values())), int(max(places.values()))
    if queue.min_nodes > there:
        each = f"with {count} addresses each " if (count := node_addresses(queue)) > 1 else ""
        yield (
            f"{queue.min_nodes} nodes {each}do not fit into the subnets of {', '.join(places)}, which have room for"
            f" {there} - use {there} or less, or larger subnets"
        )
    elif queue.efa and queue.min_nodes > most:
        room = ", ".join(f"{int(count)} in {zone}" for zone, count in places.items())
        yield (
            f"{queue.min_nodes} nodes do not fit into one zone, and EFA does not cross zones: there is room for {room}"
            f" - use {most} or less, or a queue for each zone"
        )


def _together(cluster: ClusterPlan, rooms: Mapping[str, int]) -> Iterator[str]:
    """The first, smallest set of zones whose subnets do not hold the nodes that can be nowhere else."""
    for size in range(1, len(rooms) + 1):
        for zones in combinations(rooms, size):
            queues = [queue for queue in cluster.queues if queue.min_nodes and set(_zones(queue)) <= set(zones)]
            needed = sum(queue.min_nodes * node_addresses(queue) for queue in queues)
            if needed > (free := sum(rooms[zone] for zone in zones)):
                names = ", ".join(queue.name for queue in queues)
                yield (
                    f"the nodes that {names} always have take {needed:,} addresses, and the subnets of"
                    f" {', '.join(zones)} have {free:,} for them - lower nodes.min, or use larger subnets"
                )
                return


def _places(wished: QueueSpec, queue: QueuePlan, zone: str, room: int) -> float:
    """How many nodes can stand in the zone: no more than it has addresses for, nor than its capacity counts."""
    return min(room // node_addresses(queue), _counted(wished, zone))


def _counted(wished: QueueSpec, zone: str) -> float:
    pools = [pool for pool in wished.capacity if zone in (pool.zones or (zone,))]
    return sum(pool.count if pool.market.is_reserved and pool.count is not None else inf for pool in pools)


def _zones(queue: QueuePlan) -> tuple[str, ...]:
    return tuple(dict.fromkeys(offer.zone_id for offer in queue.offers))
