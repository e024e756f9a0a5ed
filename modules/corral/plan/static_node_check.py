"""Check that static nodes fit into the base's subnets: enough addresses, and with EFA one zone for each queue.

Only an impossible number is an error. On-demand and spot capacity counts as unlimited in each zone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from math import inf

from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.plan.addresses import fixed_addresses, free_addresses, node_addresses
from corral.spec.models.cluster import ClusterSpec
from corral.spec.models.queues import QueueSpec
from corral.spec.spec_errors import SpecError, SpecProblem


def check_static_nodes(spec: ClusterSpec, cluster: ClusterPlan, base: BasePlan) -> tuple[SpecError, ...]:
    """Return the errors in `nodes.min` of the queues, given the base's subnets."""
    capacity = {zone.zone_id: max(free_addresses(zone) - fixed_addresses(cluster, zone), 0) for zone in base.zones}
    errors = [
        problem.at(("queues", number, "nodes", "min")).in_file(spec.file)
        for number, (queue_spec, queue) in enumerate(zip(spec.queues, cluster.queues, strict=True))
        for problem in _queue(queue_spec, queue, capacity)
    ]
    together = () if errors else _together(cluster, capacity)
    return (*errors, *(problem.at(("queues",)).in_file(spec.file) for problem in together))


def _queue(queue_spec: QueueSpec, queue: QueuePlan, capacity: Mapping[str, int]) -> Iterator[SpecProblem]:
    limits = {zone: _max_nodes(queue_spec, queue, zone, capacity[zone]) for zone in _zones(queue)}
    there, most = int(sum(limits.values())), int(max(limits.values()))
    if queue.min_nodes > there:
        each = f"with {count} addresses each " if (count := node_addresses(queue)) > 1 else ""
        yield SpecProblem(
            f"{queue.min_nodes} nodes {each}do not fit into the subnets of {', '.join(limits)}, which hold {there}",
            f"use {there} or less, or larger subnets",
        )
    elif queue.efa and queue.min_nodes > most:
        available = ", ".join(f"{int(count)} in {zone}" for zone, count in limits.items())
        what = f"{queue.min_nodes} nodes do not fit into one zone, and EFA does not cross zones"
        yield SpecProblem(f"{what}: the zones hold {available}", f"use {most} or less, or a queue for each zone")


def _together(cluster: ClusterPlan, capacity: Mapping[str, int]) -> Iterator[SpecProblem]:
    """Yield an error for the smallest set of zones whose subnets cannot hold the static nodes that must run there."""
    for size in range(1, len(capacity) + 1):
        for zones in combinations(capacity, size):
            queues = [queue for queue in cluster.queues if queue.min_nodes and set(_zones(queue)) <= set(zones)]
            needed = sum(queue.min_nodes * node_addresses(queue) for queue in queues)
            if needed > (free := sum(capacity[zone] for zone in zones)):
                names = ", ".join(queue.name for queue in queues)
                there = f"the subnets of {', '.join(zones)} have {free:,}"
                yield SpecProblem(
                    f"the static nodes of {names} need {needed:,} addresses, but {there}",
                    "lower nodes.min, or use larger subnets",
                )
                return


def _max_nodes(queue_spec: QueueSpec, queue: QueuePlan, zone: str, available: int) -> float:
    """Return how many nodes the zone can hold, by its addresses and by the counts of its pools."""
    return min(available // node_addresses(queue), _counted(queue_spec, zone))


def _counted(queue_spec: QueueSpec, zone: str) -> float:
    pools = [pool for pool in queue_spec.capacity if zone in (pool.zones or (zone,))]
    return sum(pool.count if pool.market.is_reserved and pool.count is not None else inf for pool in pools)


def _zones(queue: QueuePlan) -> tuple[str, ...]:
    return tuple(dict.fromkeys(offer.zone_id for offer in queue.offers))
