"""Usage grouped by user, account, queue, job or day: who used the instances' time, and what it cost. Pure.

The rows add up: the time of all instances is in a job's row, an idle or a booting one, and so is its cost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from corral.forecast.cost.cost_range import Sum, Usd
from corral.model.head_report import JobRun
from corral.report.usage.job_usage import waiting_period
from corral.report.usage.machine_rates import MachineRate
from corral.report.usage.machine_usage import Period
from corral.report.usage.time_slices import TimeSlice
from corral.report.usage.usage_summary import Usage


class GroupBy(StrEnum):
    """What rows stand for."""

    USER = "user"
    ACCOUNT = "account"
    QUEUE = "queue"
    JOB = "job"
    DAY = "day"


_OF_RUN: Mapping[GroupBy, Callable[[JobRun], str]] = {
    GroupBy.USER: lambda run: run.user,
    GroupBy.ACCOUNT: lambda run: run.account,
    GroupBy.QUEUE: lambda run: run.queue,
    GroupBy.JOB: lambda run: run.job_id,
}


class RowKind(StrEnum):
    """What a row has: jobs, or time or charges that no job has."""

    JOBS = "jobs"
    IDLE = "idle"
    BOOTING = "booting"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """A group's part. `group`: empty if the kind has none; `name`, `user`: of a job's row.

    `gpu_s`: GPU seconds that jobs had allocated, or that instances had without jobs. `usd`: its part of the cost.
    """

    kind: RowKind
    group: str
    name: str = ""
    user: str = ""
    jobs: int = 0
    waited_s: float = 0.0
    gpu_s: float = 0.0
    node_s: float = 0.0
    usd: Sum


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTable:
    """The rows of some histories, and their total. `start`, `end`: of the first and the last of them."""

    by: GroupBy
    start: datetime
    end: datetime
    rows: tuple[UsageRow, ...]
    total: UsageRow


@dataclass(slots=True)
class _Group:
    """A row while it is summed up."""

    job_ids: set[tuple[int, str]] = field(default_factory=set)
    name: str = ""
    user: str = ""
    waited_s: float = 0.0
    gpu_s: float = 0.0
    rate_s: dict[MachineRate, float] = field(default_factory=lambda: defaultdict(float))
    other: list[tuple[str, Usd | None]] = field(default_factory=list)

    def row(self, kind: RowKind, group: str) -> UsageRow:
        """The finished row."""
        costs = [(rate.named, rate.usd(seconds)) for rate, seconds in self.rate_s.items()]
        return UsageRow(
            kind=kind,
            group=group,
            name=self.name,
            user=self.user,
            jobs=len(self.job_ids),
            waited_s=self.waited_s,
            gpu_s=self.gpu_s,
            node_s=sum(self.rate_s.values()),
            usd=Sum.of((*costs, *self.other)),
        )


def usage_table(usages: Sequence[Usage], by: GroupBy) -> UsageTable:
    """The usage of these histories, of which there is at least one, grouped. The largest group comes first."""
    groups: dict[tuple[RowKind, str], _Group] = defaultdict(_Group)
    for number, usage in enumerate(usages):
        for one in usage.slices:
            _add_slice(groups, one, by, number)
        for run in usage.runs:
            _add_waiting(groups, run, by, number, usage)
        _add_other(groups, usage, by)
    rows = [group.row(kind, name) for (kind, name), group in groups.items()]
    jobs = {one for (kind, _), group in groups.items() if kind is RowKind.JOBS for one in group.job_ids}
    return UsageTable(
        by=by,
        start=min(usage.start for usage in usages),
        end=max(usage.end for usage in usages),
        rows=tuple(sorted(rows, key=lambda row: _order(row, by))),
        total=UsageRow(
            kind=RowKind.JOBS,
            group="",
            jobs=len(jobs),
            waited_s=sum(row.waited_s for row in rows),
            gpu_s=sum(row.gpu_s for row in rows),
            node_s=sum(row.node_s for row in rows),
            usd=Sum.together(row.usd for row in rows),
        ),
    )


def group_of(run: JobRun, by: GroupBy) -> str:
    """The group of a job; any but the day."""
    return _OF_RUN[by](run)


def _order(row: UsageRow, by: GroupBy) -> tuple[object, ...]:
    kinds = [*RowKind]
    if by is GroupBy.DAY:
        return (row.group, kinds.index(row.kind))
    return (kinds.index(row.kind), -row.node_s, -row.waited_s, row.group)


def _add_slice(groups: dict[tuple[RowKind, str], _Group], one: TimeSlice, by: GroupBy, number: int) -> None:
    for group, begins, ended in _of_slice(one, by):
        seconds = (ended - begins).total_seconds()
        found = groups[RowKind(one.use), group]
        found.rate_s[one.machine.rate] += seconds * one.share
        found.gpu_s += seconds * one.gpus
        if one.run is not None:
            _add_job(found, one.run, by, number)


def _of_slice(one: TimeSlice, by: GroupBy) -> Iterable[tuple[str, datetime, datetime]]:
    if by is GroupBy.DAY:
        return days_of((one.begins, one.ended))
    if one.run is not None:
        return ((group_of(one.run, by), one.begins, one.ended),)
    return ((one.machine.rate.queue if by is GroupBy.QUEUE else "", one.begins, one.ended),)


def _add_waiting(
    groups: dict[tuple[RowKind, str], _Group], run: JobRun, by: GroupBy, number: int, usage: Usage
) -> None:
    begins, ended = waiting_period(run, usage.end)
    waited = max(begins, usage.start), min(ended, usage.end)
    if waited[0] >= waited[1]:
        return
    for group, first, last in days_of(waited) if by is GroupBy.DAY else ((group_of(run, by), *waited),):
        found = groups[RowKind.JOBS, group]
        found.waited_s += (last - first).total_seconds()
        _add_job(found, run, by, number)


def _add_job(group: _Group, run: JobRun, by: GroupBy, number: int) -> None:
    group.job_ids.add((number, run.job_id))
    if by is GroupBy.JOB:
        group.name, group.user = run.name, run.user


def _add_other(groups: dict[tuple[RowKind, str], _Group], usage: Usage, by: GroupBy) -> None:
    whole = (usage.end - usage.start).total_seconds() or 1.0
    parts = days_of((usage.start, usage.end)) if by is GroupBy.DAY else (("", usage.start, usage.end),)
    for group, begins, ended in parts:
        part = (ended - begins).total_seconds() / whole
        groups[RowKind.OTHER, group].other += [(what, usd.times(part) if usd else None) for what, usd in usage.other]


def days_of(period: Period) -> Iterator[tuple[str, datetime, datetime]]:
    """The parts of the period in each day, UTC."""
    begins, ended = period
    while begins < ended:
        day: date = begins.astimezone(UTC).date()
        next = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
        yield day.isoformat(), begins, min(next, ended)
        begins = next
