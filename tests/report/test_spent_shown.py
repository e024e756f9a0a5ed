"""What a life took as words, sections and a curve; and a forecast beside it."""

from __future__ import annotations

import re

import pytest

from corral.forecast.money import Usd
from corral.forecast.whole.run import WholeRun
from corral.report.events import read_events
from corral.report.spent import words
from corral.report.spent.accrued import accrued
from corral.report.spent.compared import Beside, compare, interval_of
from corral.report.spent.sections import spent_sections
from corral.report.timeline_page import page
from shipped_run import shipped_run
from small_life import LINES, RUNS, drawn, took


def test_the_sum_is_told_with_its_parts_and_what_it_lacks() -> None:
    assert words.so_far(took()) == (
        "at least 33.92 - 47.92 USD in 2 h 30 min: nodes 32.00 - 46.00, all else at least 1.92"
        " (no price is known for alarm)"
    )


def test_the_time_of_nodes_is_told_with_what_each_part_cost() -> None:
    assert words.node_time(took()) == (
        "4.75 node hours: 6% booting (2.56 - 3.22 USD), 10% idle (3.44 - 4.78 USD), 84% in jobs (26.00 - 38.00 USD)"
    )


def test_a_life_without_a_machine_says_so() -> None:
    calm = took(read_events(LINES[:1]), ())
    assert (words.node_time(calm), words.effective(calm), words.interrupted(calm)) == (
        "no machine of a queue was launched",
        "-",
        "none",
    )


def test_an_interruption_is_a_row() -> None:
    assert list(words.interruption_rows(took().interruptions)) == [
        ("2026-11-21 23:45:00", "taken back", "train-1", "7", "10 min", "2.00 node hours", "0.00 - 12.00")
    ]


def test_a_job_that_has_not_run_again_waits_still() -> None:
    (row,) = words.interruption_rows(took(runs=RUNS[:1], end=4300).interruptions)
    assert row[4] == "5 min, still"


def test_pools_are_rows_with_their_sum() -> None:
    assert list(words.pool_rows(took())) == [
        ("train", "p4d.24xlarge spot", "2", "3.50", "0.17", "0.33", "3.00", "2.00 - 6.00", "7.00 - 21.00"),
        ("train", "p4d.24xlarge on-demand", "1", "1.25", "0.11", "0.14", "1.00", "20.00", "25.00"),
        ("together", "", "3", "4.75", "0.28", "0.47", "4.00", "", "32.00 - 46.00"),
    ]


def test_a_job_is_a_row() -> None:
    assert list(words.job_rows(took().jobs)) == [
        ("7", "fit", "ada", "completed", "2", "2", "1", "15 min", "2 h", "4.00", "26.00 - 38.00")
    ]


def test_the_money_grows_with_the_machines() -> None:
    """After an hour: all else 0.767, two spot machines for 3,500 s each."""
    then = accrued(took(), 5)[2]
    hours = 2 * 3500 / 3600
    assert then.usd == Usd(pytest.approx(0.767 + hours * 2, abs=1e-3), pytest.approx(0.767 + hours * 6, abs=1e-3))


def test_a_page_has_a_section_for_each_thing_that_people_ask() -> None:
    assert [one.anchor for one in spent_sections(took(), drawn())] == ["money", "time", "interruptions", "jobs"]


def test_the_time_of_nodes_has_the_colours_of_the_states_over_time() -> None:
    (time,) = (one for one in spent_sections(took(), drawn()) if one.anchor == "time")
    found = re.findall(r'<rect class="(\w+)"[^>]*><title>(.*?):', time.pictures[0].wide)
    assert found == [
        ("running", "jobs, kept work"),
        ("c4", "jobs, lost at most"),
        ("idle", "idle"),
        ("booting", "booting"),
    ]


def test_a_page_without_prices_has_the_picture_and_the_events() -> None:
    text = page(drawn(), notes=["there are mistakes"])
    anchors = re.findall(r'<section id="(\w+)"', text)
    assert (anchors, "<li>there are mistakes</li>" in text) == (["life", "events"], True)


@pytest.fixture(scope="module")
def whole() -> WholeRun:
    """8B on the shipped `train`."""
    return shipped_run()


def test_a_forecast_is_compared_in_the_markets_that_the_machines_were_from(whole: WholeRun) -> None:
    found = compare(took(), whole)
    assert found is not None
    assert (found.job_id, found.done, found.markets) == ("7", True, ("spot",))


def test_the_figures_of_the_job_stand_beside_the_forecast(whole: WholeRun) -> None:
    found = compare(took(), whole)
    assert found is not None
    assert [(row.what, row.least, row.most) for row in found.rows] == [
        ("days", pytest.approx(7800 / 86_400), pytest.approx(7800 / 86_400)),  # from 400 s to 8,200 s
        ("USD for its nodes", 26.0, 38.0),
        ("USD for all of it", pytest.approx(33.92, abs=0.005), None),  # the alarm has no price: nothing bounds it
        ("interruptions", 1, 1),
        ("part of the time that is progress", pytest.approx(7200 / 15_600), pytest.approx(14_400 / 15_600)),
    ]


def test_other_nodes_than_those_of_the_forecast_are_told(whole: WholeRun) -> None:
    found = compare(took(), whole)
    assert found is not None
    assert words.comparison_lead(found) == (
        "Job 7 fit, completed; the forecast is that of spot on 16 nodes, the job had 2."
    )


def test_the_forecast_beside_it_is_that_of_the_market(whole: WholeRun) -> None:
    (spot,) = (one for one in whole.courses if one.market == "spot")
    found = compare(took(), whole)
    assert found is not None
    assert (found.rows[0].low, found.rows[0].high) == (spot.days.low, spot.days.high)


def test_the_interruptions_of_the_forecast_are_those_of_the_whole_run(whole: WholeRun) -> None:
    (spot,) = (one for one in whole.courses if one.market == "spot")
    found = compare(took(), whole)
    assert found is not None
    assert (found.rows[3].low, found.rows[3].high) == (
        pytest.approx(spot.interruptions.low_per_h * spot.days.low * 24),
        pytest.approx(spot.interruptions.high_per_h * spot.days.high * 24),
    )


def test_no_job_has_nothing_beside_it(whole: WholeRun) -> None:
    assert compare(took(read_events(LINES[:1]), ()), whole) is None


def test_no_more_is_lost_than_between_the_checkpoints_of_the_forecast(whole: WholeRun) -> None:
    assert interval_of(whole) == max(one.range.best.interval_s for one in whole.courses)


def test_a_part_is_told_in_percent_and_what_is_not_known_as_such() -> None:
    row = Beside(what="part of the time that is progress", low=None, high=0.997, least=0.5, most=0.5)
    assert words.ends(row.what, row.low, row.high) == "? - 99.7%"
    assert words.ends(row.what, row.least, row.most) == "50.0%"
