"""How much of a training job's time is progress, when it is interrupted and goes on from its last checkpoint.

Everything is an expected value for failures that are equally likely at any time. Where they come more often than the
job can recover, the result says so and has no time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from corral.forecast.habits import Checkpointing, JobHabits
from corral.forecast.interruptions import Interruptions, chance_of_none, mtbf_s
from corral.forecast.intervals import daly_s
from corral.forecast.money import Usd

_SECONDS_PER_HOUR = 3600
_LEAST_PROGRESS = 0.01  # of the time; nobody lets a job run that takes a hundred times as long as it should
_SHORTEST_S = 1.0  # between checkpoints; no step of a job that is worth one is shorter
_MOST_EXPONENT = 700.0  # beyond it exp() is no float any more


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeShares:
    """Parts of the wall time; they add up to 1. `lost` is work that is done again."""

    progress: float
    checkpoints: float
    lost: float
    recovery: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCourse:
    """A run of `work_s` without interruptions, as it goes with `per_h` of them.

    `interval_s` is the computing between two checkpoints. `wall_s` and `interruptions` (how many) are None where the
    job makes no progress; `no_progress` then says why. `undisturbed`: the probability that nothing interrupts it.
    """

    work_s: float
    per_h: float
    interval_s: float
    shares: TimeShares
    wall_s: float | None
    interruptions: float | None
    undisturbed: float
    no_progress: str | None

    def cost(self, usd_per_hour: Usd) -> Usd | None:
        """What machines of this price cost until it is done; None where it never is."""
        return None if self.wall_s is None else usd_per_hour.times(self.wall_s / _SECONDS_PER_HOUR)


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseRange:
    """The run with the fewest interruptions to be expected, and with the most."""

    best: RunCourse
    worst: RunCourse


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """How much of the time is progress with checkpoints at this interval."""

    interval_s: float
    progress: float


def time_shares(interval_s: float, habits: JobHabits, per_h: float) -> TimeShares:
    """What the wall time goes into.

    A stretch of interval t and stall C takes M exp(R/M) (exp((t + C)/M) - 1), where M is the mean time between
    failures and R the time to recover, failures while recovering included (Daly 2006, the complete model). Of it
    M (exp((t + C)/M) - 1) is computing, of which t + C counts. What is computed while a checkpoint is being written,
    and lost with it, is added to R.
    """
    rate = per_h / _SECONDS_PER_HOUR
    stall_s, behind_s = habits.checkpointing.stall_s, habits.checkpointing.behind_s
    up = math.exp(-rate * (habits.recovery.total_s + behind_s))
    kept = up * _first_time(rate * (interval_s + stall_s))
    progress = kept * interval_s / (interval_s + stall_s)
    down = -math.expm1(-rate * habits.recovery.total_s)
    return TimeShares(progress=progress, checkpoints=kept - progress, lost=max(0.0, 1 - down - kept), recovery=down)


def best_interval_s(checkpointing: Checkpointing, per_h: float, *, paid_s: float = 0.0) -> float:
    """Daly's interval; not shorter than a checkpoint takes to be written, as one is written at a time.

    `paid_s`: what a checkpoint costs beside its time, as seconds of the run that cost as much. In money one is then as
    dear as a stall of both.
    """
    return max(_SHORTEST_S, checkpointing.behind_s, daly_s(checkpointing.stall_s + paid_s, mtbf_s(per_h)))


def run_course(
    work_s: float, habits: JobHabits, per_h: float, *, interval_s: float | None = None, paid_s: float = 0.0
) -> RunCourse:
    """The run of this much work (more than 0 s), with checkpoints at this interval or the best one for `paid_s`.

    A run that is shorter than the interval has one checkpoint, at its end; one that wishes to save faster than a
    checkpoint is written begins the next when it is.
    """
    wished_s = best_interval_s(habits.checkpointing, per_h, paid_s=paid_s) if interval_s is None else interval_s
    interval = min(max(wished_s, _SHORTEST_S, habits.checkpointing.behind_s), work_s)
    shares = time_shares(interval, habits, per_h)
    wall_s = work_s / shares.progress if shares.progress >= _LEAST_PROGRESS else None
    return RunCourse(
        work_s=work_s,
        per_h=per_h,
        interval_s=interval,
        shares=shares,
        wall_s=wall_s,
        interruptions=None if wall_s is None else per_h * wall_s / _SECONDS_PER_HOUR,
        undisturbed=chance_of_none(per_h, work_s / _SECONDS_PER_HOUR),
        no_progress=_why_not(interval, habits, per_h) if wall_s is None else None,
    )


def course_range(
    work_s: float,
    habits: JobHabits,
    interruptions: Interruptions,
    *,
    interval_s: float | None = None,
    paid_s: tuple[float, float] = (0.0, 0.0),
) -> CourseRange:
    """The run with the fewest and with the most interruptions that are to be expected.

    Without an interval each has its best one, for the least and for the most that a checkpoint costs beside its time.
    """
    least_s, most_s = paid_s
    return CourseRange(
        best=run_course(work_s, habits, interruptions.low_per_h, interval_s=interval_s, paid_s=least_s),
        worst=run_course(work_s, habits, interruptions.high_per_h, interval_s=interval_s, paid_s=most_s),
    )


def interval_penalty(best_s: float, other_s: float, habits: JobHabits, per_h: float) -> float | None:
    """By how much the other interval prolongs the run (0.1: a tenth); None where it never ends.

    Nothing without interruptions, nor where `best_s` is longer than either needs, as checkpoints are dear to send.
    """
    if math.isinf(best_s):
        return 0.0
    best, other = (time_shares(interval, habits, per_h).progress for interval in (best_s, other_s))
    return max(0.0, best / other - 1) if min(best, other) >= _LEAST_PROGRESS else None


def effective_time_curve(
    habits: JobHabits, per_h: float, *, shortest_s: float, longest_s: float, points: int = 60
) -> tuple[CurvePoint, ...]:
    """How much of the time is progress, for intervals from the shortest to the longest, in equal ratios."""
    ratio = (longest_s / shortest_s) ** (1 / (points - 1))
    intervals = [shortest_s * ratio**place for place in range(points)]
    return tuple(
        CurvePoint(interval_s=interval, progress=time_shares(interval, habits, per_h).progress)
        for interval in intervals
    )


def _first_time(x: float) -> float:
    """x / (exp(x) - 1): the part of computing that counts, in stretches of x mean times between failures."""
    if x > _MOST_EXPONENT:
        return 0.0
    return x / math.expm1(x) if x else 1.0


def _why_not(interval_s: float, habits: JobHabits, per_h: float) -> str:
    stretch_s = interval_s + habits.checkpointing.stall_s + habits.recovery.total_s
    return (
        f"it is interrupted every {mtbf_s(per_h):,.0f} s on average, and needs {stretch_s:,.0f} s without one to"
        " recover and reach its next checkpoint"
    )
