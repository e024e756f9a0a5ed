"""The page of usage: a bar for each day, the rows of the table, and nothing from a user that is markup."""

from __future__ import annotations

import re
from dataclasses import replace

from corral.report.charts.bar_charts import Part, Row, stacked_rows
from corral.report.pages.usage_page import usage_page
from corral.report.usage.daily_usage import daily_usage
from corral.report.usage.usage_by import GroupBy, usage_table
from small_history import RUNS, history_usage


def page(by: GroupBy = GroupBy.USER, user: str = "ada") -> str:
    usage = history_usage(runs=tuple(replace(one, user=user, cpus=192, gpus=16) for one in RUNS))
    return usage_page("train", usage_table((usage,), by), daily_usage((usage,), by), remarks=("one is lost",))


def test_a_bar_has_the_hours_of_each_group_on_that_day() -> None:
    tips = re.findall(r"<title>(2026-[^<]*)</title>", page())
    assert tips[:3] == [
        "2026-11-21, ada: 2.11 node hours",
        "2026-11-21, idle: 0.20 node hours",
        "2026-11-21, booting: 0.28 node hours",
    ]


def test_the_rows_and_the_remarks_are_there() -> None:
    text = page()
    assert re.findall(r'<th scope="row">(ada|idle|total)</th>', text) == ["ada", "idle", "total"]
    assert "<li>one is lost</li>" in text


def test_by_day_jobs_are_one_group() -> None:
    assert "2026-11-21, jobs: 2.11 node hours" in page(GroupBy.DAY)


def test_a_name_is_no_markup() -> None:
    assert "<script>" not in page(user="<script>alert(1)</script>")


def test_the_longest_bar_has_the_width_and_the_others_their_part() -> None:
    rows = [
        Row(name=name, parts=[Part(name="a", value=value, words="")], words="x")
        for name, value in (("one", 4.0), ("two", 1.0))
    ]
    widths = [float(found) for found in re.findall(r'width="([\d.]+)" height="18"', stacked_rows("t", rows))]
    assert widths[1] == round(widths[0] / 4, 1)
