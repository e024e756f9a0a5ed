"""A sweep of one region: what was left behind, what is kept, and what may be somebody else's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from corral.inventory.account import Session, read_things
from corral.inventory.kept import sized
from corral.inventory.leftovers import Leftover, find_kept, find_leftovers, of_names
from corral.inventory.states import read_alive
from corral.inventory.things import Kind, Thing


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The names that are meant: those of one environment, or all that a project declares."""

    bases: frozenset[str]
    clusters: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a sweep found in a region, judged by the stacks of `backend`.

    `foreign`: leftovers of unknown names. `kept`: the data of bases that are not up.
    """

    region: str
    backend: str
    leftovers: tuple[Leftover, ...]
    foreign: tuple[Leftover, ...]
    kept: tuple[Thing, ...]


def find(session: Session, backend: str, known: Known, *, only_known: bool) -> Findings:
    """What there is to sweep, by the stacks that live in this backend. `only_known` leaves everything else out."""
    things, alive = read_things(session), read_alive(backend, session)
    left = find_leftovers(things, alive)
    ours = of_names(left, clusters=known.clusters, bases=known.bases)
    kept = (thing for thing in find_kept(things, alive) if not only_known or thing.base in known.bases)
    return Findings(
        region=session.region_name,
        backend=backend,
        leftovers=ours,
        foreign=() if only_known else tuple(one for one in left if one not in ours),
        kept=tuple(sized(session, thing) for thing in kept),
    )


def each_once(found: Iterable[Findings]) -> tuple[Findings, ...]:
    """The findings of several regions with each thing in the first alone: what is global answers in all of them."""
    seen: set[tuple[Kind, str]] = set()
    once = []
    for one in found:
        things = (*(left.thing for left in (*one.leftovers, *one.foreign)), *one.kept)
        new = {_key(thing) for thing in things} - seen
        once.append(
            replace(
                one,
                leftovers=tuple(left for left in one.leftovers if _key(left.thing) in new),
                foreign=tuple(left for left in one.foreign if _key(left.thing) in new),
                kept=tuple(thing for thing in one.kept if _key(thing) in new),
            )
        )
        seen |= new
    return tuple(once)


def _key(thing: Thing) -> tuple[Kind, str]:
    return thing.kind, thing.id
