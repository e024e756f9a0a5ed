"""Usage as text, sections and a chart, and compared with a forecast."""

from __future__ import annotations

import re

import pytest

from corral.forecast.cost.cost_range import Usd
from corral.forecast.run.run_outlook import RunOutlook
from corral.report.pages.timeline_page import timeline_page
from corral.report.timeline.event_lines import read_events
from corral.report.usage import usage_text
from corral.report.usage.cost_over_time import accrued
from corral.report.usage.forecast_vs_actual import ForecastComparison, ForecastRow, compare_with_forecast, interval_of
from corral.report.usage.usage_sections import usage_sections
from shipped_run import shipped_run
from small_history import LINES, RUNS, history_timeline, history_usage


def test_sum_is_shown_with_its_parts_and_missing_prices() -> None:
    assert usage_text.so_far(history_usage()) == (
        "at least 33.92 - 47.92 USD in 2 h 30 min: nodes 32.00 - 46.00, everything else at least 1.92"
        " (no known price for alarm)"
    )


def test_node_time_is_shown_with_the_cost_of_each_part() -> None:
    assert usage_text.node_time(history_usage()) == (
        "4.75 node hours: 6% booting (2.56 - 3.22 USD), 10% idle (3.44 - 4.78 USD), 84% in jobs (26.00 - 38.00 USD)"
    )


def test_history_without_machines_is_shown_as_such() -> None:
    calm = history_usage(read_events(LINES[:1]), ())
    assert (usage_text.node_time(calm), usage_text.goodput(calm), usage_text.interrupted(calm)) == (
        "no node was launched",
        "-",
        "none",
    )


def test_an_interruption_is_a_row() -> None:
    assert list(usage_text.interruption_rows(history_usage().interruptions)) == [
        ("2026-11-21 23:45:00", "reclaimed", "train-1", "7", "10 min", "2.00 node hours", "0.00 - 12.00")
    ]


def test_interrupted_job_that_has_not_run_again_is_ongoing() -> None:
    (row,) = usage_text.interruption_rows(history_usage(runs=RUNS[:1], end=4300).interruptions)
    assert row[4] == "5 min, ongoing"


def test_pools_are_rows_with_a_total() -> None:
    assert list(usage_text.pool_rows(history_usage())) == [
        ("train", "p4d.24xlarge spot", "2", "3.50", "0.17", "0.33", "3.00", "2.00 - 6.00", "7.00 - 21.00"),
        ("train", "p4d.24xlarge on-demand", "1", "1.25", "0.11", "0.14", "1.00", "20.00", "25.00"),
        ("total", "", "3", "4.75", "0.28", "0.47", "4.00", "", "32.00 - 46.00"),
    ]


def test_a_job_is_a_row() -> None:
    assert list(usage_text.job_rows(history_usage().jobs)) == [
        ("7", "fit", "ada", "completed", "2", "2", "1", "15 min", "2 h", "4.00", "26.00 - 38.00")
    ]


def test_accumulated_cost_grows_with_the_machines() -> None:
    """After an hour: other charges 0.767, two spot machines for 3,500 s each."""
    then = accrued(history_usage(), 5)[2]
    hours = 2 * 3500 / 3600
    assert then.usd == Usd(pytest.approx(0.767 + hours * 2, abs=1e-3), pytest.approx(0.767 + hours * 6, abs=1e-3))


def test_page_has_a_section_per_subject() -> None:
    assert [one.anchor for one in usage_sections(history_usage(), history_timeline())] == [
        "money",
        "time",
        "interruptions",
        "jobs",
    ]


def test_node_time_has_the_colours_of_the_timeline() -> None:
    (time,) = (one for one in usage_sections(history_usage(), history_timeline()) if one.anchor == "time")
    found = re.findall(r'<rect class="(\w+)"[^>]*><title>(.*?):', time.pictures[0].wide)
    assert found == [
        ("running", "jobs, progress"),
        ("c4", "jobs, lost at most"),
        ("idle", "idle"),
        ("booting", "booting"),
    ]


def test_page_without_prices_has_the_timeline_and_the_events() -> None:
    text = timeline_page(history_timeline(), remarks=["there are mistakes"])
    anchors = re.findall(r'<section id="(\w+)"', text)
    assert (anchors, "<li>there are mistakes</li>" in text) == (["timeline", "events"], True)


@pytest.fixture(scope="module")
def whole() -> RunOutlook:
    """8B on the shipped `train`."""
    return shipped_run()


def test_forecast_is_that_of_the_markets_used(whole: RunOutlook) -> None:
    found = compare_with_forecast(history_usage(), whole)
    assert found is not None
    assert (found.job_id, found.completed, found.markets) == ("7", True, ("spot",))


def test_comparison_has_the_figures_of_the_job(whole: RunOutlook) -> None:
    found = compare_with_forecast(history_usage(), whole)
    assert found is not None
    assert [(row.what, row.least, row.most) for row in found.rows] == [
        ("days", pytest.approx(7800 / 86_400), pytest.approx(7800 / 86_400)),  # from 400 s to 8,200 s
        ("USD for nodes", 26.0, 38.0),
        ("USD total", pytest.approx(33.92, abs=0.005), None),  # the alarm has no price: nothing bounds it
        ("interruptions", 1, 1),
        ("progress", pytest.approx(7200 / 15_600), pytest.approx(14_400 / 15_600)),
    ]


def test_comparison_names_a_different_number_of_nodes(whole: RunOutlook) -> None:
    found = compare_with_forecast(history_usage(), whole)
    assert found is not None
    assert usage_text.comparison_lead(found) == (
        "Job 7 fit, completed; the forecast is that of spot on 16 nodes, the job had 2."
    )


def test_comparison_has_the_forecast_of_the_market(whole: RunOutlook) -> None:
    (spot,) = (one for one in whole.markets if one.market == "spot")
    found = compare_with_forecast(history_usage(), whole)
    assert found is not None
    assert (found.rows[0].low, found.rows[0].high) == (spot.days.low, spot.days.high)


def test_forecast_interruptions_are_those_of_the_whole_run(whole: RunOutlook) -> None:
    (spot,) = (one for one in whole.markets if one.market == "spot")
    found = compare_with_forecast(history_usage(), whole)
    assert found is not None
    assert (found.rows[3].low, found.rows[3].high) == (
        pytest.approx(spot.interruptions.low_per_h * spot.days.low * 24),
        pytest.approx(spot.interruptions.high_per_h * spot.days.high * 24),
    )


def test_no_job_means_no_comparison(whole: RunOutlook) -> None:
    assert compare_with_forecast(history_usage(read_events(LINES[:1]), ()), whole) is None


def test_lost_work_is_limited_by_the_forecast_interval(whole: RunOutlook) -> None:
    assert interval_of(whole) == max(one.range.best.interval_s for one in whole.markets)


def test_a_fraction_is_shown_in_percent_and_an_unknown_end_as_a_question_mark() -> None:
    row = ForecastRow(what="progress", low=None, high=0.997, least=0.5, most=0.5, fraction=True)
    job = {"job_id": "7", "name": "fit", "completed": True, "nodes": 2, "planned": 2, "markets": ("spot",)}
    assert list(usage_text.comparison_rows(ForecastComparison(**job, rows=(row,)))) == [
        ("progress", "? - 99.7%", "50.0%"),
    ]
