"""The faults of a simulation and their times, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

KINDS = (
    "full",  # an offer has little capacity or none
    "dies",  # an offer's machines end within a minute
    "refused",  # an offer's launches are refused
    "throttled",
    "outage",
    "lost reply",  # done, but the response is lost
    "late",  # new instances are visible and can be terminated only after a while
    "hangs at boot",
    "does not boot",  # and shuts itself down
    "dies later",
    "hangs later",
    "sick",  # a health check fails, and drains the node
    "admin",  # a person drains a node
    "crash",  # of the autoscaler, between two effects
    "slurmctld",  # does not answer
    "twice",  # slurmctld sends a request twice
    "lost request",  # a request of slurmctld is lost
    "twin",  # a node has a second machine
    "stays down",  # a node that was set DOWN stays DOWN when it is off
)
_LASTING = ("does not boot", "does not boot", "lost request")  # faults whose effects only show after a while
QUIET_AFTER = 10_000.0  # seconds; no faults afterwards


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault between two times, with probability `chance` per call; of one offer, or of all if `offer` is empty."""

    kind: str
    since: float
    until: float
    chance: float
    offer: str = ""


@dataclass(kw_only=True)
class Faults:
    """The faults of one simulation. `age`: returns the seconds since its start."""

    rng: random.Random
    listed: Sequence[Fault]
    age: Callable[[], float]
    met: dict[str, int] = field(default_factory=dict)

    def now(self, kind: str, offer: str = "") -> bool:
        """Whether this fault occurs now."""
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
    """Up to a dozen faults, of all kinds or of few; sometimes none, to check normal operation.

    One simulation in three has a single kind, for all offers and more than an hour: some effects show only then.
    """
    if rng.random() < 0.33:
        kind, since = rng.choice((*KINDS, *_LASTING)), rng.uniform(0, QUIET_AFTER * 0.3)
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
