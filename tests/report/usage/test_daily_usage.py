"""Usage day by day, in the small history of two days: nothing is counted twice, and nothing is lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from corral.report.usage.daily_usage import OTHERS, DailyUsage, daily_usage
from corral.report.usage.usage_by import GroupBy, RowKind, usage_table
from small_history import RUNS, history_usage

USAGE = history_usage(runs=tuple(replace(one, account="ml", cpus=192, gpus=16) for one in RUNS))


def sums(daily: DailyUsage) -> dict[tuple[str, str], float]:
    return {(str(one.kind), one.name): sum(one.node_s) for one in daily.groups}


@pytest.mark.parametrize("by", list(GroupBy))
def test_its_parts_are_those_of_the_rows(by: GroupBy) -> None:
    rows = [row for row in usage_table((USAGE,), by).rows if row.kind is not RowKind.OTHER]
    whole = {kind: sum(row.node_s for row in rows if row.kind is kind) for kind in {row.kind for row in rows}}
    daily = daily_usage((USAGE,), by)
    assert {
        kind: pytest.approx(sum(sum(one.node_s) for one in daily.groups if one.kind is kind)) for kind in whole
    } == whole


def test_midnight_divides_a_job() -> None:
    daily = daily_usage((USAGE,), GroupBy.USER)
    ada = next(one for one in daily.groups if one.name == "ada")
    assert daily.periods == ("2026-11-21", "2026-11-22")
    # Two nodes: an hour and the 200 seconds before midnight; the 3,400 after it.
    assert ada.node_s == (2 * 3800.0, 2 * 3400.0)


def test_a_day_without_usage_is_there() -> None:
    earlier = replace(USAGE, start=USAGE.start - timedelta(days=2), slices=(), runs=())
    daily = daily_usage((earlier, USAGE), GroupBy.USER)
    assert daily.periods == ("2026-11-19", "2026-11-20", "2026-11-21", "2026-11-22")
    assert [one.node_s[:2] for one in daily.groups] == [(0.0, 0.0)] * len(daily.groups)


def test_more_than_two_months_are_shown_by_month() -> None:
    earlier = replace(USAGE, start=USAGE.start - timedelta(days=70), slices=(), runs=())
    daily = daily_usage((earlier, USAGE), GroupBy.USER)
    assert daily.periods == ("2026-09", "2026-10", "2026-11")
    assert sums(daily) == pytest.approx(sums(daily_usage((USAGE,), GroupBy.USER)))


def test_small_groups_are_added_up() -> None:
    runs = tuple(replace(one, user=name) for one, name in zip(RUNS, ("ada", "bob"), strict=False))
    usage = history_usage(runs=runs)
    daily = daily_usage((usage,), GroupBy.USER, most=1)
    each = sums(daily_usage((usage,), GroupBy.USER))
    jobs = {name: seconds for (kind, name), seconds in each.items() if kind == "jobs"}
    largest = max(jobs, key=lambda name: jobs[name])
    assert [one.name for one in daily.groups if one.kind is RowKind.JOBS] == [largest, OTHERS]
    assert sums(daily)["jobs", OTHERS] == pytest.approx(sum(jobs.values()) - jobs[largest])
