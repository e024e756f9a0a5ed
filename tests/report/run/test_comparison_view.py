"""The view of a comparison: a table of possible rows, sentences for the others."""

from __future__ import annotations

from dataclasses import replace

from corral.forecast.cost.cost_range import Sum, Usd
from corral.forecast.run.comparison import Alternative
from corral.forecast.run.market_forecast import Span
from corral.model.enums import Market
from corral.report.run.comparison_view import cells, compare_document, exclusions
from corral.report.sections.comparison_section import compare_section

ROW = Alternative(
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


def test_row_has_duration_cost_speed_and_cost_per_billion_tokens() -> None:
    assert cells(ROW) == (
        "p5.48xlarge us-east-1 spot",
        "16",
        "9.6 - 11.8",
        "66,847 - 251,872",
        "1,091,933",
        "66.85 - 251.87",
    )


def test_incomplete_cost_is_a_question_mark() -> None:
    assert (cells(UNPRICED)[3], cells(UNPRICED)[5]) == ("?", "?")


def test_missing_prices_and_impossible_rows_are_listed() -> None:
    assert exclusions([ROW, AWAY, UNPRICED]) == [
        "p5.48xlarge us-east-1 on-demand: no known price for 16 p5.48xlarge, on-demand",
        "p5.48xlarge us-east-1: does not fit",
    ]


def test_page_draws_known_costs_and_lists_possible_rows() -> None:
    section = compare_section([ROW, UNPRICED, AWAY])
    (picture,), (table,) = section.pictures, section.tables
    assert (picture.wide.count('class="c0"'), len(table.rows), len(section.lines)) == (1, 2, 2)


def test_the_document_has_every_row() -> None:
    assert [(row["market"], row["fits"]) for row in compare_document([ROW, UNPRICED, AWAY])] == [
        ("spot", True),
        ("on-demand", True),
        (None, False),
    ]
