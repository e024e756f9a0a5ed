"""Usage over a period as one record: how instance time was spent, and what everything cost. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from corral.forecast.cost.cost_range import Sum, Usd
from corral.model.head_report import JobRun
from corral.report.timeline.event_lines import ClusterEvent
from corral.report.timeline.event_nodes import by_node
from corral.report.timeline.node_boot_times import corrected_runs
from corral.report.usage.interruption_cost import Interruption, find_interruptions
from corral.report.usage.job_usage import JobCost, job_costs
from corral.report.usage.machine_rates import MachineRate, Rates
from corral.report.usage.machine_usage import MachineUsage, machine_usage
from corral.report.usage.time_slices import TimeSlice, time_slices

_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A part of the machines' time in node seconds, and its cost."""

    node_s: float
    usd: Sum


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolCost:
    """The machines of one queue with the same price."""

    rate: MachineRate
    machines: int
    booting: Share
    idle: Share
    busy: Share

    @property
    def together(self) -> Share:
        """Their whole time."""
        parts = (self.booting, self.idle, self.busy)
        return Share(node_s=sum(part.node_s for part in parts), usd=Sum.together(part.usd for part in parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Usage between two times. `other`: charges other than nodes for the whole period, by name.

    `slices`: the time of all machines, divided. `runs`: of jobs, corrected.
    """

    start: datetime
    end: datetime
    machines: tuple[MachineUsage, ...]
    pools: tuple[PoolCost, ...]
    other: tuple[tuple[str, Usd | None], ...]
    interruptions: tuple[Interruption, ...]
    jobs: tuple[JobCost, ...]
    slices: tuple[TimeSlice, ...]
    runs: tuple[JobRun, ...]

    @property
    def hours(self) -> float:
        """The length of the period."""
        return (self.end - self.start).total_seconds() / _SECONDS_PER_HOUR

    @property
    def node_s(self) -> float:
        """The node seconds of all machines."""
        return sum(one.lifetime_s for one in self.machines)

    @property
    def lost(self) -> Share:
        """The maximum work lost to interruptions, which is part of the time in jobs."""
        return Share(
            node_s=sum(one.lost_node_s for one in self.interruptions),
            usd=Sum.together(one.lost_usd for one in self.interruptions),
        )

    @property
    def nodes_usd(self) -> Sum:
        """The cost of all machines."""
        return Sum.together(pool.together.usd for pool in self.pools)

    @property
    def other_usd(self) -> Sum:
        """The cost of everything else."""
        return Sum.of(self.other)

    @property
    def usd(self) -> Sum:
        """The total cost."""
        return Sum.together((self.nodes_usd, self.other_usd))

    def total(self, of: Callable[[PoolCost], Share]) -> Share:
        """The sum of this part over all pools."""
        parts = [of(pool) for pool in self.pools]
        return Share(node_s=sum(part.node_s for part in parts), usd=Sum.together(part.usd for part in parts))

    @property
    def goodput(self) -> tuple[float, float] | None:
        """The minimum and maximum share of node time spent on work that was not lost; None without machines."""
        busy = sum(one.busy_s for one in self.machines)
        return (max(0.0, busy - self.lost.node_s) / self.node_s, busy / self.node_s) if self.node_s else None


def compute_usage(
    events: Sequence[ClusterEvent],
    runs: Sequence[JobRun],
    rates: Rates,
    *,
    start: datetime,
    end: datetime,
    interval_s: float | None = None,
) -> Usage:
    """Usage between the two times. `events`: the whole history. `interval_s`: the jobs' checkpoint interval."""
    node_events = by_node(events)
    seen = corrected_runs(runs, node_events, end)
    found = machine_usage(node_events, seen, rates, start=start, end=end)
    slices = tuple(time_slices(found, seen, rates.nodes(), end))
    hours = (end - start).total_seconds() / _SECONDS_PER_HOUR
    return Usage(
        start=start,
        end=end,
        machines=found,
        pools=tuple(_pools(found)),
        other=tuple(
            (one.named, one.usd_per_hour.times(hours) if one.usd_per_hour else None) for one in rates.other_items()
        ),
        interruptions=find_interruptions(found, seen, end=end, interval_s=interval_s),
        jobs=job_costs(slices, seen, start=start, end=end),
        slices=slices,
        runs=seen,
    )


def _pools(found: Sequence[MachineUsage]) -> Iterator[PoolCost]:
    for rate in dict.fromkeys(one.rate for one in found):
        own = [one for one in found if one.rate == rate]
        yield PoolCost(
            rate=rate,
            machines=len(own),
            booting=_share(own, lambda one: one.booting_s),
            idle=_share(own, lambda one: one.idle_s),
            busy=_share(own, lambda one: one.busy_s),
        )


def _share(own: Sequence[MachineUsage], seconds: Callable[[MachineUsage], float]) -> Share:
    return Share(
        node_s=sum(seconds(one) for one in own), usd=Sum.of((one.rate.named, one.usd(seconds(one))) for one in own)
    )
