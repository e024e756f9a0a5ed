"""The instances of a cluster's history: market, start, end, and how their time was spent. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from corral.forecast.cost.cost_range import Usd
from corral.model.head_report import JobRun
from corral.model.node_names import number_of, queue_of
from corral.report.timeline.event_lines import ClusterEvent
from corral.report.timeline.event_nodes import expanded
from corral.report.timeline.node_boot_times import Boot, boots
from corral.report.usage.machine_rates import MachineRate, Rates

# Events that end an instance, or its jobs, unplanned.
INTERRUPTING = ("notice", "marked-down", "rebooted")
Period = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineUsage:
    """An instance of a node. `ready`: when it could run jobs. `ended`: its end, or that of the known history.

    `work`: the disjoint periods in which at least one job ran on it.
    `interruption_events`: the events that may have interrupted its jobs.
    """

    node: str
    rate: MachineRate
    launched: datetime
    ready: datetime
    ended: datetime
    work: tuple[Period, ...]
    interruption_events: tuple[ClusterEvent, ...]

    @property
    def lifetime_s(self) -> float:
        """Seconds from launch to end."""
        return _seconds(self.launched, self.ended)

    @property
    def booting_s(self) -> float:
        """Seconds from launch until it could run jobs."""
        return _seconds(self.launched, self.ready)

    @property
    def busy_s(self) -> float:
        """Seconds in which at least one job ran on it."""
        return sum(_seconds(*one) for one in self.work)

    @property
    def idle_s(self) -> float:
        """Seconds in which it was ready and had no job."""
        return self.lifetime_s - self.booting_s - self.busy_s

    def usd(self, seconds: float) -> Usd | None:
        """The cost of so many seconds; None if the price is unknown."""
        return self.rate.usd(seconds)


def machine_usage(
    node_events: Mapping[str, Sequence[ClusterEvent]],
    runs: Sequence[JobRun],
    rates: Rates,
    *,
    start: datetime,
    end: datetime,
) -> tuple[MachineUsage, ...]:
    """The machines that existed between the two times, by node and launch, cut off at both.

    `node_events`: the events by node. `runs`: from `corrected_runs`.
    """
    began: dict[str, list[JobRun]] = {}
    for run in runs:
        for node in expanded(run.nodes) if run.started is not None else ():
            began.setdefault(node, []).append(run)
    ordered = sorted(node_events, key=lambda name: (queue_of(name), number_of(name)))
    return tuple(
        _machine(node, boot, node_events[node], began.get(node, ()), rates, (start, end))
        for node in ordered
        for boot in boots(node_events[node])
        if boot.launched < end and (boot.ended or end) > start
    )


def of_node(found: Iterable[MachineUsage]) -> Mapping[str, Sequence[MachineUsage]]:
    """The machines by node."""
    grouped: dict[str, list[MachineUsage]] = {}
    for one in found:
        grouped.setdefault(one.node, []).append(one)
    return grouped


def at_work(
    run: JobRun, there: Mapping[str, Sequence[MachineUsage]], begins: datetime, ended: datetime
) -> Iterator[tuple[MachineUsage, float]]:
    """The machines of the run's nodes that existed between the two times, each with its seconds."""
    for node in expanded(run.nodes):
        for machine in there.get(node, ()):
            if seconds := _overlap_s(machine, begins, ended):
                yield machine, seconds


def run_period(run: JobRun, end: datetime) -> Period:
    """The period of a started run; until the end of the known history if it still runs."""
    ended = end if run.ended is None else utc_time(run.ended)
    return utc_time(run.started or run.submitted), ended


def utc_time(second: int) -> datetime:
    """The time of this Unix timestamp."""
    return datetime.fromtimestamp(second, UTC)


def _machine(
    node: str, boot: Boot, node_events: Sequence[ClusterEvent], runs: Sequence[JobRun], rates: Rates, shown: Period
) -> MachineUsage:
    start, end = shown
    launched, ended = max(boot.launched, start), min(boot.ended or end, end)
    work = tuple(_merged(_cut((run_period(run, end) for run in runs), launched, ended)))
    up = boot.up or (work[0][0] if work else ended)
    launch = next(one for one in node_events if one.kind == "launched" and one.at == boot.launched)
    return MachineUsage(
        node=node,
        rate=rates.rate(queue_of(node), launch),
        launched=launched,
        ready=min(max(launched, min(up, work[0][0] if work else up)), ended),
        ended=ended,
        work=work,
        interruption_events=tuple(
            one for one in node_events if one.kind in INTERRUPTING and launched <= one.at <= ended
        ),
    )


def _cut(periods: Iterable[Period], begins: datetime, ended: datetime) -> Iterator[Period]:
    cut = ((max(first, begins), min(last, ended)) for first, last in periods)
    yield from (one for one in cut if one[0] < one[1])


def _merged(periods: Iterable[Period]) -> list[Period]:
    """The periods in order, overlapping ones merged: two jobs on a node use its time once."""
    found: list[Period] = []
    for first, last in sorted(periods):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def _seconds(begins: datetime, ended: datetime) -> float:
    return (ended - begins).total_seconds()


def _overlap_s(machine: MachineUsage, begins: datetime, ended: datetime) -> float:
    return max(0.0, _seconds(max(machine.launched, begins), min(machine.ended, ended)))
