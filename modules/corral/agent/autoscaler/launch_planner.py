"""Plan launches for the nodes that Slurm requests: which offers, in which order. Pure.

All EFA nodes that a job waits for come from one offer: a partial launch is released, and the next offer is tried.
Single nodes, and nodes without EFA, take any capacity. Offers are tried in declared order; one that refused
backs off for a while. A launch waits for reserved capacity that EC2 is cleaning (`reserved_capacity`), and a job does
not leave its machines in reserved capacity for another market.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType

from corral.agent.autoscaler.reserved_capacity import ReservationUsage, home_of, is_awaited
from corral.agent.cluster.launch_errors import summarize
from corral.agent.cluster.models import Instance, PowerRequest
from corral.agent.cluster.state import AutoscalerState, Backoff, Intent
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.model.node_names import fold, number_of, queue_of
from corral.model.tags import launched_kinds, launched_tags

# Instances per RunInstances call. EC2 allows five calls at once, then two a second, so large requests use larger calls.
AT_ONCE, MAX_AT_ONCE, CALLS_AT_ONCE = 100, 500, 5
TAG_LENGTH = 256  # characters of a tag's value. Source: EC2 User Guide, "Tag your Amazon EC2 resources"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRequest:
    """Nodes of one queue to launch. `together`: all from one offer, or none.

    `allocated_nodes`: nodes that their job already has, whose zone they must share. `requested_at`: when slurmctld
    requested them. `of_one_job`: one job waits for all of them.
    """

    key: str
    queue: QueuePlan
    nodes: tuple[str, ...]
    together: bool
    requested_at: float
    of_one_job: bool
    allocated_nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchStep:
    """Launch these nodes."""

    intent: Intent


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseStep:
    """Terminate a partial launch: its offer lacks capacity for all nodes."""

    instance_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOutcome:
    """The end of a launch request: its instances, and the nodes that no offer serves, with the reason.

    `waiting`: nodes to launch later, because reserved capacity is being cleaned. `misplaced`: nodes of the job to
    replace, because the others can only be had in another zone.
    """

    instances: tuple[Instance, ...]
    unavailable: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    reason: str = ""
    misplaced: tuple[str, ...] = ()


Step = LaunchStep | ReleaseStep | LaunchOutcome


def market_of(queue: QueuePlan, offer: str) -> str | None:
    """The market of an offer; None if the queue no longer has the offer."""
    return next((one.market.value for one in queue.offers if one.key == offer), None)


def tags_of(plan: ClusterPlan, queue: QueuePlan, offer: str) -> Mapping[str, Mapping[str, str]]:
    """The tags of a launch from an offer, by kind of resource; of the instance alone if the queue has it no more."""
    tags = launched_tags(plan.tags, plan.name, queue.name, offer)
    kinds = next((launched_kinds(one.market) for one in queue.offers if one.key == offer), ("instance",))
    return dict.fromkeys(kinds, tags)


def launch_requests(plan: ClusterPlan, power_request: PowerRequest) -> tuple[LaunchRequest, ...]:
    """The launches for a power request. A node that two jobs wait for is launched once; unknown nodes are left out.

    Nodes without a known job are treated as one job's, because Slurm's resume file may be lost. Nodes that need not be
    together form one launch request per queue, regardless of jobs: EC2 allows few launches a second.
    """
    taken, found, allocated = set[str](), dict[tuple[str, int], list[str]](), dict[int, tuple[str, ...]]()
    waiting = dict[tuple[str, int], set[int]]()  # numbers of jobs
    queues = {queue.name: queue for queue in plan.queues}
    for number, nodes in enumerate((*(job.nodes for job in power_request.jobs), power_request.nodes), start=1):
        new = [node for node in dict.fromkeys(nodes) if node not in taken and queue_of(node) in queues]
        taken.update(new)
        for name, group in groupby(sorted(new, key=queue_of), key=queue_of):
            together = tuple(group)
            others = power_request.jobs[number - 1].allocated_nodes if number <= len(power_request.jobs) else ()
            key = number if queues[name].efa and len(together) + len(others) > 1 else 0
            found.setdefault((name, key), []).extend(together)
            waiting.setdefault((name, key), set()).add(number)
            allocated[key] = others if key else ()
    return tuple(
        LaunchRequest(
            key=f"{power_request.key} {name} {number}",
            queue=queues[name],
            nodes=tuple(sorted(nodes, key=number_of)),
            together=number > 0,
            requested_at=power_request.requested_at,
            of_one_job=len(waiting[name, number]) == 1,
            allocated_nodes=allocated[number],
        )
        for (name, number), nodes in found.items()
    )


def unknown_nodes(plan: ClusterPlan, nodes: Sequence[str]) -> tuple[str, ...]:
    """The nodes that the cluster does not declare, or no longer declares."""
    known = {queue.name: queue.max_nodes for queue in plan.queues}
    return tuple(node for node in nodes if number_of(node) > known.get(queue_of(node), 0))


def next_launch_step(
    request: LaunchRequest,
    held: Sequence[Instance],
    state: AutoscalerState,
    now: float,
    usage: Mapping[str, ReservationUsage] = MappingProxyType({}),
) -> Step:
    """The next step of a launch request. `held`: the instances that exist; `usage`: of offers that back off."""
    wanted = set(request.nodes)
    mine = _first_of_each(one for one in held if one.node in wanted and one.active)
    missing = tuple(node for node in request.nodes if node not in mine)
    if intent := state.intents.get(request.key):
        return LaunchStep(intent=intent)
    used = {one.offer for one in mine.values()} if request.together else set[str]()
    if len(used) > 1:
        return _release(mine)
    zones = _zones_of_allocated(request, held) if request.together else frozenset[str]()
    suitable = tuple(
        offer.key
        for offer in request.queue.offers
        if (not zones or offer.zone_id in zones) and (not used or offer.key in used)
    )
    offers = tuple(key for key in suitable if _is_available(key, state.backoffs, now))
    home = home_of(request.allocated_nodes, len(request.nodes), held, state.backoffs, usage)
    needed = len(missing) if request.of_one_job else 1
    if missing and is_awaited(suitable, len(missing), needed, home, request.requested_at, state.backoffs, usage, now):
        return LaunchOutcome(instances=tuple(mine.values()), waiting=missing)
    if used and missing and not offers:
        return _release(mine)
    if zones and not mine and not offers and not home and available_offers(request.queue, state.backoffs, now):
        reason = (
            f"the job has {fold(request.allocated_nodes)} in {', '.join(sorted(zones))}, "
            "which has no capacity for the others"
        )
        return LaunchOutcome(instances=(), unavailable=request.nodes, reason=reason, misplaced=request.allocated_nodes)
    if not missing:
        return LaunchOutcome(instances=tuple(mine.values()))
    if not offers:
        return LaunchOutcome(
            instances=tuple(mine.values()),
            unavailable=missing,
            reason=why_unavailable(request.queue, state.backoffs, now),
        )
    at_once = min(max(AT_ONCE, -(-len(request.nodes) // CALLS_AT_ONCE)), MAX_AT_ONCE)
    batch = _batch(missing, at_once)
    tries = state.tries.get(request.key, 0)
    token = hashlib.sha256(f"{request.key} {tries} {offers[0]} {fold(batch)}".encode()).hexdigest()
    at_least = len(batch) if request.together else 1
    return LaunchStep(intent=Intent(offer=offers[0], nodes=batch, at_least=at_least, token=token))


def available_offers(queue: QueuePlan, backoffs: Mapping[str, Backoff], now: float) -> tuple[str, ...]:
    """The keys of the offers that are not backing off, in declared order."""
    return tuple(offer.key for offer in queue.offers if _is_available(offer.key, backoffs, now))


def available_at(queue: QueuePlan, backoffs: Mapping[str, Backoff], now: float) -> float | None:
    """When the first backoff of a queue's offers ends; None if an offer is available now."""
    if available_offers(queue, backoffs, now) or not queue.offers:
        return None
    return min(backoffs[offer.key].until for offer in queue.offers)


def why_unavailable(queue: QueuePlan, backoffs: Mapping[str, Backoff], now: float) -> str:
    """Why no offer of a queue is available: offers grouped by reason, in declared order."""
    offers_by_reason: dict[str, list[str]] = {}
    for offer in queue.offers:
        held = backoffs.get(offer.key)
        if held and held.until > now:
            offers_by_reason.setdefault(summarize(held.reason), []).append(offer.key)
    return (
        "; ".join(f"{', '.join(offers)}: {reason}" for reason, offers in offers_by_reason.items())
        or "the queue has no offer"
    )


def _is_available(offer: str, backoffs: Mapping[str, Backoff], now: float) -> bool:
    return offer not in backoffs or backoffs[offer].until <= now


def _release(mine: Mapping[str, Instance]) -> ReleaseStep:
    return ReleaseStep(instance_ids=tuple(sorted(one.instance_id for one in mine.values())))


def _zones_of_allocated(request: LaunchRequest, held: Sequence[Instance]) -> frozenset[str]:
    """The zone of the allocated nodes; empty if they are in several, which no launch can fix."""
    zone_of = {offer.key: offer.zone_id for offer in request.queue.offers}
    there = set(request.allocated_nodes)
    found = {zone_of[one.offer] for one in held if one.node in there and one.active and one.offer in zone_of}
    return frozenset(found) if len(found) == 1 else frozenset()


def _first_of_each(instances: Iterator[Instance]) -> Mapping[str, Instance]:
    found: dict[str, Instance] = {}
    for one in instances:
        found.setdefault(one.node, one)
    return found


def _batch(nodes: Sequence[str], at_once: int) -> tuple[str, ...]:
    """The first nodes, as many as one call can launch: their folded names must fit in a tag."""
    batch = list(nodes[:at_once])
    while len(batch) > 1 and len(fold(batch)) > TAG_LENGTH:
        batch.pop()
    return tuple(batch)
