"""What of an account's things nobody needs any more. Pure: things and the names of what is alive in, leftovers out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from corral.inventory.things import QUEUE_TAG, Kind, Thing

_LOOSE = frozenset({Kind.VOLUME, Kind.INTERFACE})  # of a compute node, these go with their instance


@dataclass(frozen=True, slots=True, kw_only=True)
class Alive:
    """The names of the bases and clusters whose stacks hold anything.

    `queues`: of the clusters that say so, the names of theirs; an up that has not ended yet says nothing.
    """

    bases: frozenset[str]
    clusters: frozenset[str]
    queues: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """A thing that nothing alive owns, and why that is so."""

    thing: Thing
    reason: str


def find_leftovers(things: Iterable[Thing], alive: Alive) -> tuple[Leftover, ...]:
    """The leftovers among the things, in their order. Kept data is never one."""
    judged = ((thing, _reason(thing, alive)) for thing in things if thing.keep is None)
    return tuple(Leftover(thing=thing, reason=reason) for thing, reason in judged if reason)


def find_kept(things: Iterable[Thing], alive: Alive) -> tuple[Thing, ...]:
    """The kept data among the things, in their order, whose base is not up: that of a base in use is no question."""
    return tuple(thing for thing in things if thing.keep is not None and thing.base not in alive.bases)


def of_names(leftovers: Iterable[Leftover], clusters: Collection[str], bases: Collection[str]) -> tuple[Leftover, ...]:
    """Those whose cluster, or whose base where they have no cluster, has one of these names."""
    return tuple(
        one
        for one in leftovers
        if (one.thing.cluster in clusters if one.thing.cluster is not None else one.thing.base in bases)
    )


def _reason(thing: Thing, alive: Alive) -> str | None:
    if thing.cluster is not None and thing.cluster not in alive.clusters:
        return f"cluster {thing.cluster} is not up"
    if thing.cluster is None and thing.base not in alive.bases:
        return f"base {thing.base} is not up"
    if thing.kind in _LOOSE and thing.state == "available" and QUEUE_TAG in thing.tags:
        return "its instance is gone"
    queues = alive.queues.get(thing.cluster or "")
    queue = thing.tags.get(QUEUE_TAG)
    if thing.kind is Kind.INSTANCE and queues is not None and queue is not None and queue not in queues:
        return f"cluster {thing.cluster} has no queue {queue}"
    return None
