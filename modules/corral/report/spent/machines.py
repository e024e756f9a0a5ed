"""The machines that a life had: how each was sold, from when to when, and what its time went into. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from corral.forecast.money import Usd
from corral.model.head import JobRun
from corral.model.node_names import number_of, queue_of
from corral.report.concerned import expanded
from corral.report.events import Happened
from corral.report.readiness import Boot, boots
from corral.report.spent.tariff import Sold, Tariff

_SECONDS_PER_HOUR = 3600
# What takes a machine from its jobs without anybody having wished so.
TAKEN = ("notice", "forgotten", "rebooted")
Stretch = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine of a node. `ready`: when it could work; `over`: when it ended, or the end of all that is known.

    `work`: when at least one job ran on it, stretches that do not touch. `taken`: what took it from its jobs.
    """

    node: str
    sold: Sold
    launched: datetime
    ready: datetime
    over: datetime
    work: tuple[Stretch, ...]
    taken: tuple[Happened, ...]

    @property
    def life_s(self) -> float:
        """How long it was there."""
        return _seconds(self.launched, self.over)

    @property
    def booting_s(self) -> float:
        """How long it was paid for and could not work."""
        return _seconds(self.launched, self.ready)

    @property
    def busy_s(self) -> float:
        """How long at least one job ran on it."""
        return sum(_seconds(*one) for one in self.work)

    @property
    def idle_s(self) -> float:
        """How long it could have worked and had no job."""
        return self.life_s - self.booting_s - self.busy_s

    def usd(self, seconds: float) -> Usd | None:
        """What so many seconds of it cost; None where its price is not known."""
        return self.sold.usd_per_hour.times(seconds / _SECONDS_PER_HOUR) if self.sold.usd_per_hour else None


def machines(
    told: Mapping[str, Sequence[Happened]], runs: Sequence[JobRun], tariff: Tariff, *, start: datetime, end: datetime
) -> tuple[Machine, ...]:
    """The machines that were there between the two moments, by node and launch; what was outside is cut off.

    `told`: the events by their nodes. `runs`: as `readiness` sees them.
    """
    began: dict[str, list[JobRun]] = {}
    for run in runs:
        for node in expanded(run.nodes) if run.started is not None else ():
            began.setdefault(node, []).append(run)
    ordered = sorted(told, key=lambda name: (queue_of(name), number_of(name)))
    return tuple(
        _machine(node, boot, told[node], began.get(node, ()), tariff, (start, end))
        for node in ordered
        for boot in boots(told[node])
        if boot.launched < end and (boot.over or end) > start
    )


def of_node(found: Iterable[Machine]) -> Mapping[str, Sequence[Machine]]:
    """The machines by their nodes."""
    grouped: dict[str, list[Machine]] = {}
    for one in found:
        grouped.setdefault(one.node, []).append(one)
    return grouped


def at_work(
    run: JobRun, there: Mapping[str, Sequence[Machine]], begins: datetime, over: datetime
) -> Iterator[tuple[Machine, float]]:
    """The machines of the run's nodes that were there between the two, and how many seconds each was."""
    for node in expanded(run.nodes):
        for machine in there.get(node, ()):
            if seconds := _overlap_s(machine, begins, over):
                yield machine, seconds


def stretch(run: JobRun, end: datetime) -> Stretch:
    """From when to when a run that has started ran, or runs on until the end of all that is known."""
    over = end if run.ended is None else moment(run.ended)
    return moment(run.started or run.submitted), over


def moment(second: int) -> datetime:
    """The time of this second since 1970."""
    return datetime.fromtimestamp(second, UTC)


def _machine(
    node: str, boot: Boot, told: Sequence[Happened], runs: Sequence[JobRun], tariff: Tariff, shown: Stretch
) -> Machine:
    start, end = shown
    launched, over = max(boot.launched, start), min(boot.over or end, end)
    work = tuple(_merged(_cut((stretch(run, end) for run in runs), launched, over)))
    up = boot.up or (work[0][0] if work else over)
    launch = next(one for one in told if one.kind == "launched" and one.at == boot.launched)
    return Machine(
        node=node,
        sold=tariff.sold(queue_of(node), launch),
        launched=launched,
        ready=min(max(launched, min(up, work[0][0] if work else up)), over),
        over=over,
        work=work,
        taken=tuple(one for one in told if one.kind in TAKEN and launched <= one.at <= over),
    )


def _cut(stretches: Iterable[Stretch], begins: datetime, over: datetime) -> Iterator[Stretch]:
    cut = ((max(first, begins), min(last, over)) for first, last in stretches)
    yield from (one for one in cut if one[0] < one[1])


def _merged(stretches: Iterable[Stretch]) -> list[Stretch]:
    """The stretches in their order, those that touch as one: two jobs on a node take its time once."""
    found: list[Stretch] = []
    for first, last in sorted(stretches):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def _seconds(begins: datetime, over: datetime) -> float:
    return (over - begins).total_seconds()


def _overlap_s(machine: Machine, begins: datetime, over: datetime) -> float:
    return max(0.0, _seconds(max(machine.launched, begins), min(machine.over, over)))
