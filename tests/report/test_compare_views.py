"""A comparison and hardware to buy, for the eye: tables of what can be had, sentences for what cannot."""

from __future__ import annotations

from dataclasses import replace

from corral.forecast.money import Sum, Usd
from corral.forecast.whole.compare import Compared
from corral.forecast.whole.course import Span
from corral.model.markets import Market
from corral.report.compare import cells, compare_document, why_nots
from corral.report.sections.compared import compare_section

ROW = Compared(
    instance_type="p5.48xlarge",
    region="us-east-1",
    market=Market.SPOT,
    nodes=16,
    accelerators=128,
    layout="DP 128",
    tokens=10**12,
    tokens_per_s=1_091_933.4,
    days=Span(low=9.64, high=11.82),
    usd=Sum(usd=Usd(66_847.3, 251_871.9)),
    why_not=None,
)
UNPRICED = replace(ROW, market=Market.ON_DEMAND, usd=Sum(usd=Usd(10.0, 12.0), missing=("16 p5.48xlarge, on-demand",)))
AWAY = replace(ROW, market=None, days=None, usd=Sum(usd=None), tokens_per_s=None, why_not="does not fit")


def test_a_row_has_time_cost_speed_and_the_cost_of_a_billion_tokens() -> None:
    assert cells(ROW) == (
        "p5.48xlarge us-east-1 spot",
        "16",
        "9.6 - 11.8",
        "66,847 - 251,872",
        "1,091,933",
        "66.85 - 251.87",
    )


def test_a_cost_that_lacks_a_price_is_not_shown_as_one() -> None:
    assert (cells(UNPRICED)[3], cells(UNPRICED)[5]) == ("?", "?")


def test_what_lacks_a_price_and_what_cannot_be_had_are_told() -> None:
    assert why_nots([ROW, AWAY, UNPRICED]) == [
        "p5.48xlarge us-east-1 on-demand: no price is known for 16 p5.48xlarge, on-demand",
        "p5.48xlarge us-east-1: does not fit",
    ]


def test_the_page_draws_what_has_a_cost_and_lists_what_can_be_had() -> None:
    section = compare_section([ROW, UNPRICED, AWAY])
    (picture,), (table,) = section.pictures, section.tables
    assert (picture.wide.count('class="c0"'), len(table.rows), len(section.lines)) == (1, 2, 2)


def test_the_document_has_every_row() -> None:
    assert [(row["market"], row["fits"]) for row in compare_document([ROW, UNPRICED, AWAY])] == [
        ("spot", True),
        ("on-demand", True),
        (None, False),
    ]
