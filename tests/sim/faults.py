"""What goes wrong, and when: drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

KINDS = (
    "full",  # an offer has little room or none
    "dies",  # what an offer gives ends within a minute
    "refused",  # an offer's launches may not be made
    "throttled",
    "outage",
    "lost reply",  # done, but nobody hears of it
    "late",  # new instances are shown and can be ended only after a while
    "hangs at boot",
    "does not boot",  # and shuts itself down
    "dies later",
    "hangs later",
    "sick",  # a health check finds something, and drains the node
    "admin",  # somebody drains a node, for reasons of their own
    "crash",  # of the keeper, between two effects
    "slurmctld",  # does not answer
    "twice",  # what slurmctld asks for, it asks for twice
    "lost note",  # what slurmctld asks for, nobody hears
    "twin",  # a node has a second machine, from wherever it came
    "stays down",  # a node that was set DOWN is so still when it is off
)
_WANTS_TIME = ("does not boot", "does not boot", "lost note")  # what only shows when it goes on
QUIET_AFTER = 10_000.0  # seconds; from here on nothing goes wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One kind, from then until then, as often as `chance` says; of one offer, where `offer` is not empty."""

    kind: str
    since: float
    until: float
    chance: float
    offer: str = ""


@dataclass(kw_only=True)
class Faults:
    """All of one life. `age`: the seconds that have passed."""

    rng: random.Random
    listed: Sequence[Fault]
    age: Callable[[], float]
    met: dict[str, int] = field(default_factory=dict)

    def now(self, kind: str, offer: str = "") -> bool:
        """Whether this goes wrong now."""
        for fault in self.listed:
            if (
                fault.kind == kind
                and fault.since <= self.age() < fault.until
                and fault.offer in ("", offer)
                and self.rng.random() < fault.chance
            ):
                self.met[kind] = self.met.get(kind, 0) + 1
                return True
        return False


def drawn(rng: random.Random, offers: Sequence[str]) -> tuple[Fault, ...]:
    """Up to a dozen faults, of all kinds or of few; now and then none, so that it is known what is normal.

    One life in three has one kind alone, of all offers and for more than an hour: what only shows when it goes on.
    """
    if rng.random() < 0.33:
        kind, since = rng.choice((*KINDS, *_WANTS_TIME)), rng.uniform(0, QUIET_AFTER * 0.3)
        return (Fault(kind=kind, since=since, until=since + 6000.0, chance=0.3 if kind == "crash" else 1.0),)
    kinds = KINDS if rng.random() < 0.5 else rng.sample(KINDS, 2)
    return tuple(_one(rng, offers, kinds) for _ in range(rng.choice((0, 2, 4, 8, 12))))


def _one(rng: random.Random, offers: Sequence[str], kinds: Sequence[str]) -> Fault:
    kind = rng.choice(kinds)
    since = rng.uniform(0, QUIET_AFTER * 0.8)
    long = rng.choice((100.0, 600.0, 4000.0))
    chance = {"crash": rng.choice((0.05, 0.3)), "full": 1.0, "refused": 1.0}.get(kind, rng.choice((0.1, 0.5, 1.0)))
    of_an_offer = kind in ("full", "dies", "refused", "hangs at boot", "does not boot")
    return Fault(
        kind=kind,
        since=since,
        until=min(since + long, QUIET_AFTER),
        chance=chance,
        offer=rng.choice((*offers, "")) if of_an_offer else "",
    )
