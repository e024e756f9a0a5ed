"""What it costs to save too rarely: a checkpoint a day instead of the best interval, with the most interruptions."""

from __future__ import annotations

from dataclasses import dataclass

from corral.forecast.habits import JobHabits
from corral.forecast.money import Usd
from corral.forecast.reliability import best_interval_s, interval_penalty
from corral.forecast.whole.course import Course
from corral.model.markets import Market

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rarely:
    """One market. `longer`: by which part the run takes longer than with the best interval; None where it never ends.

    `usd`: what that adds to the cost of its nodes; None where it is not known.
    """

    market: Market
    longer: float | None
    usd: Usd | None


def saved_daily(course: Course, habits: JobHabits) -> Rarely:
    """A checkpoint after each 24 hours of computing, beside the best interval for as many interruptions."""
    per_h = course.interruptions.high_per_h
    best_s = best_interval_s(habits.checkpointing, per_h, paid_s=course.paid_s[1])
    longer = interval_penalty(best_s, _DAY_S, habits, per_h)
    nodes = course.charges[0].usd
    return Rarely(
        market=course.market, longer=longer, usd=nodes.times(longer) if nodes and longer is not None else None
    )
