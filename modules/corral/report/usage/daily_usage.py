"""Usage day by day: the node time of each group, and what no job used. Pure. The parts of a day add up to its whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from corral.report.usage.usage_by import GroupBy, RowKind, days_of, group_of
from corral.report.usage.usage_summary import Usage

OTHERS = "all others"
MOST_BARS = 62  # two months by day; a longer time is shown by month


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyGroup:
    """A group's node seconds in each period. `name`: empty for jobs without one, and for time that no job used."""

    kind: RowKind
    name: str
    node_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyUsage:
    """The groups, those with the most time first, then `others`, idle and booting. `periods`: days or months, UTC."""

    by: GroupBy
    monthly: bool
    periods: tuple[str, ...]
    groups: tuple[DailyGroup, ...]


def daily_usage(usages: Sequence[Usage], by: GroupBy, most: int = 8) -> DailyUsage:
    """The usage of these histories, of which there is at least one. `most`: groups of jobs that are shown one by one.

    Days without usage between the first and the last are there, too. Grouped by day, jobs are one group.
    """
    whole = min(usage.start for usage in usages), max(usage.end for usage in usages)
    days = [day for day, _, _ in days_of(whole)]
    monthly = len(days) > MOST_BARS
    periods = list(dict.fromkeys(_period(day, monthly=monthly) for day in days))
    found: dict[tuple[RowKind, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for usage in usages:
        for one in usage.slices:
            name = group_of(one.run, by) if one.run is not None and by is not GroupBy.DAY else ""
            for day, begins, ended in days_of((one.begins, one.ended)):
                seconds = (ended - begins).total_seconds() * one.share
                found[RowKind(one.use), name][_period(day, monthly=monthly)] += seconds
    jobs = sorted((key for key in found if key[0] is RowKind.JOBS), key=lambda key: (-sum(found[key].values()), key[1]))
    groups = [(RowKind.JOBS, name, [found[RowKind.JOBS, name]]) for _, name in jobs[:most]]
    if rest := [found[key] for key in jobs[most:]]:
        groups.append((RowKind.JOBS, OTHERS, rest))
    groups += [(kind, "", [found[kind, ""]]) for kind in (RowKind.IDLE, RowKind.BOOTING) if (kind, "") in found]
    return DailyUsage(
        by=by,
        monthly=monthly,
        periods=tuple(periods),
        groups=tuple(
            DailyGroup(
                kind=kind, name=name, node_s=tuple(sum(one.get(period, 0.0) for one in parts) for period in periods)
            )
            for kind, name, parts in groups
        ),
    )


def _period(day: str, *, monthly: bool) -> str:
    return day[:7] if monthly else day
