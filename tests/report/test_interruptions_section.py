"""How likely a run is to be interrupted, on the page: by hand, for rates in round numbers."""

from __future__ import annotations

from dataclasses import dataclass

from corral.catalog.reliability import Cause
from corral.forecast.interruptions import InterruptionRate, Interruptions
from corral.forecast.whole.course import Span
from corral.model.markets import Market
from corral.report.sections.interruptions import interruptions

MACHINES = InterruptionRate(cause=Cause.HARDWARE, low_per_h=0.001, high_per_h=0.01)
SPOT = InterruptionRate(cause=Cause.SPOT, low_per_h=0.0, high_per_h=0.1)
DAYS = Span(low=5.0, high=10.0)


@dataclass(frozen=True)
class Course:
    """What the section reads of a market."""

    market: Market
    interruptions: Interruptions
    days: Span = DAYS


@dataclass(frozen=True)
class Run:
    """What the section reads of a run."""

    courses: tuple[Course, ...]


ALONE = Interruptions(rates=(MACHINES,), sources=("a study",))
WITH_SPOT = Interruptions(rates=(MACHINES, SPOT), sources=("a study", "bands"))
SECTION = interruptions(
    Run(  # type: ignore[arg-type]
        courses=(
            Course(Market.RESERVATION, ALONE),
            Course(Market.ON_DEMAND, ALONE),
            Course(Market.SPOT, WITH_SPOT),
        )
    )
)
CHANCES, CAUSES = SECTION.tables


def test_markets_in_which_it_is_the_same_share_their_columns() -> None:
    assert CHANCES.names == (
        "after",
        "chance, reservation, on-demand",
        "expected, reservation, on-demand",
        "chance, spot",
        "expected, spot",
    )


def test_times_go_to_the_end_of_the_run() -> None:
    assert [row[0] for row in CHANCES.rows] == ["1 h", "24 h", "7 d", "10 d"]


def test_chances_and_numbers_after_a_day() -> None:
    # 1 - exp(-0.024), 1 - exp(-0.24); on spot 1 - exp(-0.024), 1 - exp(-2.64)
    assert CHANCES.rows[1] == ("24 h", "2.4% - 21.3%", "0.024 - 0.24", "2.4% - 92.9%", "0.024 - 2.64")


def test_a_cause_that_may_not_come_is_said_so() -> None:
    assert CAUSES.rows == (("hardware", "4 d 4 h - 41 d 16 h"), ("spot", "10 h or less often"))


def test_every_source_is_named_once() -> None:
    assert SECTION.lines == ("a study", "bands")


def test_what_is_the_same_in_all_markets_is_one_line() -> None:
    picture = SECTION.pictures[0].wide
    assert (picture.count('class="line'), "at least: reservation, on-demand, spot" in picture) == (3, True)
