"""All that a life took, as one record: what the time of its machines went into, and what all of it costs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from corral.forecast.money import Sum, Usd
from corral.model.head import JobRun
from corral.report.concerned import by_node
from corral.report.events import Happened
from corral.report.readiness import as_they_were
from corral.report.spent.interruptions import Interruption, interruptions
from corral.report.spent.jobs import JobCost, jobs
from corral.report.spent.machines import Machine, machines
from corral.report.spent.tariff import Sold, Tariff

_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A part of machines' time, in node seconds, and what it costs."""

    node_s: float
    usd: Sum


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolCost:
    """The machines of one queue that were sold alike."""

    sold: Sold
    machines: int
    booting: Share
    idle: Share
    busy: Share

    @property
    def together(self) -> Share:
        """All of their time."""
        parts = (self.booting, self.idle, self.busy)
        return Share(node_s=sum(part.node_s for part in parts), usd=Sum.together(part.usd for part in parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a life took between two moments. `things`: what costs money beside nodes, by name, for all of that time."""

    start: datetime
    end: datetime
    machines: tuple[Machine, ...]
    pools: tuple[PoolCost, ...]
    things: tuple[tuple[str, Usd | None], ...]
    interruptions: tuple[Interruption, ...]
    jobs: tuple[JobCost, ...]

    @property
    def hours(self) -> float:
        """How long that was."""
        return (self.end - self.start).total_seconds() / _SECONDS_PER_HOUR

    @property
    def node_s(self) -> float:
        """The time of all machines together."""
        return sum(one.life_s for one in self.machines)

    @property
    def lost(self) -> Share:
        """Work that may have been lost to interruptions, at most; it is part of the time in jobs."""
        return Share(
            node_s=sum(one.lost_node_s for one in self.interruptions),
            usd=Sum.together(one.lost_usd for one in self.interruptions),
        )

    @property
    def nodes_usd(self) -> Sum:
        """What all machines cost."""
        return Sum.together(pool.together.usd for pool in self.pools)

    @property
    def things_usd(self) -> Sum:
        """What all else cost."""
        return Sum.of(self.things)

    @property
    def usd(self) -> Sum:
        """What all of it cost."""
        return Sum.together((self.nodes_usd, self.things_usd))

    def total(self, of: Callable[[PoolCost], Share]) -> Share:
        """The same part of all pools."""
        parts = [of(pool) for pool in self.pools]
        return Share(node_s=sum(part.node_s for part in parts), usd=Sum.together(part.usd for part in parts))

    @property
    def effective(self) -> tuple[float, float] | None:
        """The part of the machines' time that was work which was kept, at least and at most. None of no machines."""
        busy = sum(one.busy_s for one in self.machines)
        return (max(0.0, busy - self.lost.node_s) / self.node_s, busy / self.node_s) if self.node_s else None


def spent(
    events: Sequence[Happened],
    runs: Sequence[JobRun],
    tariff: Tariff,
    *,
    start: datetime,
    end: datetime,
    interval_s: float | None = None,
) -> Spent:
    """What was spent between the two moments. `events`: all of the life. `interval_s`: how often the jobs save."""
    told = by_node(events)
    seen = as_they_were(runs, told, end)
    found = machines(told, seen, tariff, start=start, end=end)
    hours = (end - start).total_seconds() / _SECONDS_PER_HOUR
    return Spent(
        start=start,
        end=end,
        machines=found,
        pools=tuple(_pools(found)),
        things=tuple(
            (one.named, one.usd_per_hour.times(hours) if one.usd_per_hour else None) for one in tariff.things()
        ),
        interruptions=interruptions(found, seen, end=end, interval_s=interval_s),
        jobs=jobs(found, seen, start=start, end=end),
    )


def _pools(found: Sequence[Machine]) -> Iterator[PoolCost]:
    for sold in dict.fromkeys(one.sold for one in found):
        own = [one for one in found if one.sold == sold]
        yield PoolCost(
            sold=sold,
            machines=len(own),
            booting=_share(own, lambda one: one.booting_s),
            idle=_share(own, lambda one: one.idle_s),
            busy=_share(own, lambda one: one.busy_s),
        )


def _share(own: Sequence[Machine], seconds: Callable[[Machine], float]) -> Share:
    return Share(
        node_s=sum(seconds(one) for one in own), usd=Sum.of((one.sold.named, one.usd(seconds(one))) for one in own)
    )
