"""Usage grouped by user, account, queue, job and day, in round numbers, and its views."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from corral.forecast.cost.cost_range import Usd
from corral.report.usage.usage_by import GroupBy, RowKind, UsageTable, usage_table
from corral.report.usage.usage_by_views import usage_table_csv, usage_table_document
from small_history import RUNS, history_usage, run

# Ada's job 7 of the small history, and a job of Bob that waits from 2,000 s on.
BOBS = replace(run(2000, None, None, "pending", nodes=""), job_id="8", user="bob", name="=1+1", account="bio")
EVERYBODY = (*(replace(one, account="ml", cpus=192, gpus=16) for one in RUNS), BOBS)


def grouped(by: GroupBy) -> UsageTable:
    return usage_table((history_usage(runs=EVERYBODY),), by)


def node_hours(table: UsageTable) -> list[tuple[str, str, float]]:
    return [(str(row.kind), row.group, row.node_s / 3600) for row in table.rows if row.kind is not RowKind.OTHER]


def test_each_user_has_a_row_and_so_has_time_without_jobs() -> None:
    assert node_hours(grouped(GroupBy.USER)) == [
        ("jobs", "ada", 4.0),
        ("jobs", "bob", 0.0),
        ("idle", "", pytest.approx(1700 / 3600)),
        ("booting", "", pytest.approx(1000 / 3600)),
    ]


@pytest.mark.parametrize("by", list(GroupBy))
def test_rows_add_up_to_the_time_and_the_cost_of_the_history(by: GroupBy) -> None:
    table, usage = grouped(by), history_usage(runs=EVERYBODY)
    usd, whole = table.total.usd.usd, usage.usd.usd
    assert usd and whole
    assert (table.total.node_s, usd.low, usd.high) == (
        pytest.approx(usage.node_s),
        pytest.approx(whole.low),
        pytest.approx(whole.high),
    )


def test_waiting_time_counts_for_jobs_that_never_ran() -> None:
    waited = {row.group: row.waited_s for row in grouped(GroupBy.ACCOUNT).rows if row.kind is RowKind.JOBS}
    assert waited == {"ml": 350.0 + 600.0, "bio": 7000.0}


def test_gpu_hours_are_those_allocated() -> None:
    (ada, *_) = grouped(GroupBy.USER).rows
    assert ada.gpu_s / 3600 == 32.0  # 16 GPUs for two hours


def test_a_requeued_job_is_one_job() -> None:
    assert [row.jobs for row in grouped(GroupBy.USER).rows][:2] == [1, 1]


def test_queues_have_their_own_idle_time() -> None:
    assert [one[:2] for one in node_hours(grouped(GroupBy.QUEUE))] == [
        ("jobs", "train"),
        ("idle", "train"),
        ("booting", "train"),
    ]


def test_jobs_have_their_name_and_user() -> None:
    (first, second, *_) = grouped(GroupBy.JOB).rows
    assert [(row.group, row.name, row.user) for row in (first, second)] == [("7", "fit", "ada"), ("8", "=1+1", "bob")]


def test_a_period_over_midnight_is_divided_by_day() -> None:
    """The history begins at 22:40; its first run lasts from 22:46:40 to 23:46:40, its second from 23:56:40 on."""
    jobs = [one for one in node_hours(grouped(GroupBy.DAY)) if one[0] == "jobs"]
    assert jobs == [("jobs", "2026-11-21", 2 + 2 * 200 / 3600), ("jobs", "2026-11-22", pytest.approx(2 * 3400 / 3600))]


def test_other_charges_are_divided_by_day() -> None:
    heads = [row.usd.usd for row in grouped(GroupBy.DAY).rows if row.kind is RowKind.OTHER]
    whole = history_usage().other_usd.usd
    assert whole
    assert [one.low for one in heads if one] == [
        pytest.approx(whole.low * 4800 / 9000),
        pytest.approx(whole.low * 4200 / 9000),
    ]


def test_two_deployments_are_added_and_their_jobs_are_apart() -> None:
    twice = usage_table((history_usage(runs=EVERYBODY), history_usage(runs=EVERYBODY)), GroupBy.USER)
    (ada, *_) = twice.rows
    assert (ada.jobs, ada.node_s / 3600, twice.total.jobs) == (2, 8.0, 4)


def test_csv_has_a_row_each_and_plain_numbers() -> None:
    (ada, bob, *_) = csv.DictReader(io.StringIO(usage_table_csv(grouped(GroupBy.ACCOUNT))))
    assert (ada["kind"], ada["account"], ada["jobs"], ada["gpu_hours"], ada["node_hours"]) == (
        "jobs",
        "ml",
        "1",
        "32.000000",
        "4.000000",
    )
    assert (bob["account"], bob["waited_hours"], bob["usd_low"]) == ("bio", "1.944444", "0.000000")


def test_csv_names_no_formula() -> None:
    (_, second, *_) = csv.DictReader(io.StringIO(usage_table_csv(grouped(GroupBy.JOB))))
    assert second["name"] == "'=1+1"


def test_document_has_the_rows_and_their_total() -> None:
    document = usage_table_document("dev", grouped(GroupBy.USER), ["a problem"])
    assert (document["schema"], document["by"], document["problems"], document["rows"][0]["user"]) == (
        "corral.usage/1",
        "user",
        ["a problem"],
        "ada",
    )
    assert (document["total"]["jobs"], document["total"]["node_hours"]) == (2, 4.75)


def test_ada_pays_for_four_node_hours() -> None:
    (ada, *_) = grouped(GroupBy.USER).rows
    assert ada.usd.usd == Usd(26.0, 38.0)  # three hours of spot at 2 to 6 USD, one of on-demand at 20
