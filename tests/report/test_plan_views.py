"""What people see of a plan: the same facts at every width, plain text where nobody looks."""

import io
import re

import pytest
from rich.console import Console

from corral.forecast.cost import forecast_cost
from corral.report.cost import cost_view
from corral.report.plan import plan_view
from worked_example import BASE, CLUSTER, RoundPrices

COST = forecast_cost(BASE, CLUSTER, RoundPrices())


def seen(width: int, *, colour: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colour, highlight=False, markup=False, emoji=False)
    for part in (*plan_view(BASE, CLUSTER), *cost_view(COST)):
        console.print(part)
    return out.getvalue()


def words(text: str) -> list[str]:
    return sorted(re.sub(r"[─\s]+", " ", text).split())


@pytest.mark.parametrize("width", [80, 160])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(len(line) for line in seen(width).splitlines()) <= width


def test_narrow_and_wide_say_the_same() -> None:
    assert words(seen(80)) == words(seen(160))


def test_colour_adds_nothing_but_colour() -> None:
    assert re.sub(r"\x1b\[[0-9;]*m", "", seen(120, colour=True)) == seen(120)


def test_plain_output_has_no_escapes() -> None:
    assert "\x1b" not in seen(80)


def test_every_interface_of_a_node_is_shown_by_card_and_device() -> None:
    rows = [line.split() for line in seen(160).splitlines() if "(no address)" in line or "ENA (IP)" in line]
    assert [row[:3] for row in rows] == [["0", "0", "ENA"], ["0", "1", "EFA"], ["1", "0", "EFA"]]


def test_node_is_shown_as_slurm_will_have_it() -> None:
    assert "Sockets=2 CoresPerSocket=24 ThreadsPerCore=2 RealMemory=1120665" in seen(160)


def test_spot_is_a_range_and_on_demand_is_one_price() -> None:
    rows = [line.split() for line in seen(160).splitlines() if line.strip().startswith("train ")]
    assert rows == [
        ["train", "spot", "4", "2.00", "-", "6.00", "8.00", "-", "24.00", "[2]"],
        ["train", "on-demand", "4", "20.00", "80.00", "[2]"],
    ]


def test_every_mark_of_a_source_has_its_footnote() -> None:
    text = seen(160)
    marks = set(re.findall(r"\[(\d+)\] *$", text, re.MULTILINE))
    notes = set(re.findall(r"^  \[(\d+)\] ", text, re.MULTILINE))
    assert marks == notes == {"1", "2"}


def test_missing_price_is_said_below_the_sums() -> None:
    assert "No price is known for alarm: the sums are too low by that." in seen(160)


def test_a_budget_is_told_with_what_makes_it_count() -> None:
    told = " ".join(seen(160).split())
    assert "counts only once the tag corral:base is activated as a cost allocation tag (billing console)" in told
