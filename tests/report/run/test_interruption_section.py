"""The probability of interruptions on the page, hand-worked for round rates."""

from __future__ import annotations

from dataclasses import dataclass

from corral.catalog.accelerators.failure_rates import Cause
from corral.forecast.interruptions import InterruptionRate, Interruptions
from corral.forecast.run.market_forecast import Span
from corral.model.enums import Market
from corral.report.sections.interruption_section import interruption_section

MACHINES = InterruptionRate(cause=Cause.HARDWARE, low_per_h=0.001, high_per_h=0.01)
SPOT = InterruptionRate(cause=Cause.SPOT, low_per_h=0.0, high_per_h=0.1)
DAYS = Span(low=5.0, high=10.0)


@dataclass(frozen=True)
class Course:
    """The fields of a market that the section reads."""

    market: Market
    interruptions: Interruptions
    days: Span = DAYS


@dataclass(frozen=True)
class Run:
    """The fields of a run that the section reads."""

    markets: tuple[Course, ...]


ALONE = Interruptions(rates=(MACHINES,), sources=("a study",))
WITH_SPOT = Interruptions(rates=(MACHINES, SPOT), sources=("a study", "bands"))
SECTION = interruption_section(
    Run(  # type: ignore[arg-type]
        markets=(
            Course(Market.RESERVATION, ALONE),
            Course(Market.ON_DEMAND, ALONE),
            Course(Market.SPOT, WITH_SPOT),
        )
    )
)
CHANCES, CAUSES = SECTION.tables


def test_markets_with_the_same_rate_share_columns() -> None:
    assert CHANCES.names == (
        "after",
        "probability, reservation, on-demand",
        "expected, reservation, on-demand",
        "probability, spot",
        "expected, spot",
    )


def test_rows_end_with_the_run() -> None:
    assert [row[0] for row in CHANCES.rows] == ["1 h", "24 h", "7 d", "10 d"]


def test_probabilities_and_counts_after_a_day() -> None:
    # 1 - exp(-0.024), 1 - exp(-0.24); on spot 1 - exp(-0.024), 1 - exp(-2.64)
    assert CHANCES.rows[1] == ("24 h", "2.4% - 21.3%", "0.024 - 0.24", "2.4% - 92.9%", "0.024 - 2.64")


def test_cause_that_may_never_occur_is_shown_as_less_often() -> None:
    assert CAUSES.rows == (("hardware", "4 d 4 h - 41 d 16 h"), ("spot", "10 h or less often"))


def test_every_source_is_named_once() -> None:
    assert SECTION.lines == ("a study", "bands")


def test_equal_rates_of_all_markets_are_one_line() -> None:
    picture = SECTION.pictures[0].wide
    assert (picture.count('class="line'), "at least: reservation, on-demand, spot" in picture) == (3, True)
