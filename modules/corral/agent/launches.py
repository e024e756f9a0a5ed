"""What to launch for the nodes that Slurm wants, from which offer, in which order. Pure.

All nodes of a queue with EFA that one job waits for come from one offer, or none does: what came too little is returned
and the next offer is tried. Single nodes, and nodes without EFA, take what there is. Offers are tried as declared; one
that refused rests for a while.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from corral.agent.memory import Cold, Intent, Memory
from corral.agent.refusals import in_short
from corral.agent.world import Instance, Note
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.model.node_names import fold, number_of, queue_of

# Instances of one RunInstances call. Five calls are free, then EC2 allows two a second: large wishes get larger calls.
AT_ONCE, MOST_AT_ONCE, FREE_CALLS = 100, 500, 5
TAG_LENGTH = 256  # characters of a tag's value. Source: EC2 User Guide, "Tag your Amazon EC2 resources"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Nodes of one queue that are to be launched; `together`: from one offer, or not at all.

    `beside`: the nodes that their job has already, in whose zone they must be.
    """

    key: str
    queue: QueuePlan
    nodes: tuple[str, ...]
    together: bool
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Make this launch."""

    intent: Intent


@dataclass(frozen=True, slots=True, kw_only=True)
class Return:
    """End what came from an offer that did not give all of it."""

    instance_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Nothing is left to launch: what there is, and the nodes that nothing could be had for, with the reason.

    `leave`: nodes of the job that had better go, since its others can be had elsewhere only.
    """

    instances: tuple[Instance, ...]
    without: tuple[str, ...] = ()
    why: str = ""
    leave: tuple[str, ...] = ()


Step = Launch | Return | Done


def market_of(queue: QueuePlan, offer: str) -> str | None:
    """How this offer's machines are paid for; None where the queue has no such offer any more."""
    return next((one.market.value for one in queue.offers if one.key == offer), None)


def wishes(plan: ClusterPlan, note: Note) -> tuple[Wish, ...]:
    """What to launch for a note. A node that two jobs wait for is launched once; nodes of no queue are left out.

    Nodes that no job is known to wait for are taken for those of one: Slurm's word about the jobs may be lost.

    Nodes that need not be together are one wish a queue, however many jobs wait for them: EC2 allows few launches a
    second.
    """
    taken, found, beside = set[str](), dict[tuple[str, int], list[str]](), dict[int, tuple[str, ...]]()
    queues = {queue.name: queue for queue in plan.queues}
    for number, nodes in enumerate((*(job.nodes for job in note.jobs), note.nodes), start=1):
        new = [node for node in dict.fromkeys(nodes) if node not in taken and queue_of(node) in queues]
        taken.update(new)
        for name, group in groupby(sorted(new, key=queue_of), key=queue_of):
            together = tuple(group)
            others = note.jobs[number - 1].beside if number <= len(note.jobs) else ()
            key = number if queues[name].efa and len(together) + len(others) > 1 else 0
            found.setdefault((name, key), []).extend(together)
            beside[key] = others if key else ()
    return tuple(
        Wish(
            key=f"{note.key} {name} {number}",
            queue=queues[name],
            nodes=tuple(sorted(nodes, key=number_of)),
            together=number > 0,
            beside=beside[number],
        )
        for (name, number), nodes in found.items()
    )


def strangers(plan: ClusterPlan, nodes: Sequence[str]) -> tuple[str, ...]:
    """Those of the nodes that the cluster does not have, or has no more."""
    known = {queue.name: queue.max_nodes for queue in plan.queues}
    return tuple(node for node in nodes if number_of(node) > known.get(queue_of(node), 0))


def next_step(wish: Wish, held: Sequence[Instance], memory: Memory, now: float) -> Step:
    """What to do next for a wish, when these are the instances that there are."""
    wanted = set(wish.nodes)
    mine = _first_of_each(one for one in held if one.node in wanted and one.coming)
    missing = tuple(node for node in wish.nodes if node not in mine)
    if intent := memory.intents.get(wish.key):
        return Launch(intent=intent)
    offers = warm(wish.queue, memory.cold, now)
    if wish.together and (zones := _zones(wish, held)):
        near = tuple(offer.key for offer in wish.queue.offers if offer.key in offers and offer.zone_id in zones)
        if offers and not near and not mine:
            why = (
                f"the job has {fold(wish.beside)} in {', '.join(sorted(zones))}, where there is no room for the others"
            )
            return Done(instances=(), without=wish.nodes, why=why, leave=wish.beside)
        offers = near
    if wish.together and mine:
        used = {one.offer for one in mine.values()}
        if len(used) > 1 or (missing and used.isdisjoint(offers)):
            return Return(instance_ids=tuple(sorted(one.instance_id for one in mine.values())))
        offers = tuple(used)
    if not missing:
        return Done(instances=tuple(mine.values()))
    if not offers:
        return Done(instances=tuple(mine.values()), without=missing, why=why_cold(wish.queue, memory.cold, now))
    at_once = min(max(AT_ONCE, -(-len(wish.nodes) // FREE_CALLS)), MOST_AT_ONCE)
    batch = _batch(missing, at_once)
    tries = memory.tries.get(wish.key, 0)
    token = hashlib.sha256(f"{wish.key} {tries} {offers[0]} {fold(batch)}".encode()).hexdigest()
    at_least = len(batch) if wish.together else 1
    return Launch(intent=Intent(offer=offers[0], nodes=batch, at_least=at_least, token=token))


def warm(queue: QueuePlan, cold: Mapping[str, Cold], now: float) -> tuple[str, ...]:
    """The keys of the offers that do not rest, as declared."""
    return tuple(offer.key for offer in queue.offers if offer.key not in cold or cold[offer.key].until <= now)


def cold_until(queue: QueuePlan, cold: Mapping[str, Cold], now: float) -> float | None:
    """When the first offer of a queue has rested; None where one can be asked now."""
    if warm(queue, cold, now) or not queue.offers:
        return None
    return min(cold[offer.key].until for offer in queue.offers)


def why_cold(queue: QueuePlan, cold: Mapping[str, Cold], now: float) -> str:
    """Why no offer of a queue can be asked: those that were told the same together, the first declared first."""
    told: dict[str, list[str]] = {}
    for offer in queue.offers:
        held = cold.get(offer.key)
        if held and _rests(held, now):
            told.setdefault(in_short(held.why), []).append(offer.key)
    return "; ".join(f"{', '.join(offers)}: {why}" for why, offers in told.items()) or "the queue has no offer"


def _zones(wish: Wish, held: Sequence[Instance]) -> frozenset[str]:
    """The zones of the nodes beside; none where they are in several, which no launch can mend."""
    zone_of = {offer.key: offer.zone_id for offer in wish.queue.offers}
    there = set(wish.beside)
    found = {zone_of[one.offer] for one in held if one.node in there and one.coming and one.offer in zone_of}
    return frozenset(found) if len(found) == 1 else frozenset()


def _rests(held: Cold | None, now: float) -> bool:
    return held is not None and held.until > now


def _first_of_each(instances: Iterator[Instance]) -> Mapping[str, Instance]:
    found: dict[str, Instance] = {}
    for one in instances:
        found.setdefault(one.node, one)
    return found


def _batch(nodes: Sequence[str], at_once: int) -> tuple[str, ...]:
    """The first nodes, as many as one call launches: their folded names are the value of a tag."""
    batch = list(nodes[:at_once])
    while len(batch) > 1 and len(fold(batch)) > TAG_LENGTH:
        batch.pop()
    return tuple(batch)
