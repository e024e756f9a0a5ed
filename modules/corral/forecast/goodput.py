"""The share of a training job's time that is progress, if it is interrupted and resumes from its last checkpoint.

All results are expected values for failures that are equally likely at any time. If failures come faster than the job
can recover, the result gives the reason and no time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from corral.forecast.checkpoint_interval import SHORTEST_S, best_interval_s
from corral.forecast.checkpoint_policy import CheckpointPolicy
from corral.forecast.interruptions import Interruptions, mtbf_s

_SECONDS_PER_HOUR = 3600
_MIN_PROGRESS = 0.01  # of the time; a job a hundred times slower than planned makes no progress
_MAX_EXPONENT = 700.0  # exp() overflows beyond it


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeShares:
    """Shares of the wall time; they add up to 1. `lost`: work that is repeated."""

    progress: float
    checkpoints: float
    lost: float
    recovery: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """A run of `work_s` seconds of uninterrupted work, with its interruptions.

    `interval_s`: computing time between checkpoints. `wall_s` and `interruptions` (a count) are None if the job makes
    no progress; `no_progress` gives the reason.
    """

    work_s: float
    interval_s: float
    shares: TimeShares
    wall_s: float | None
    interruptions: float | None
    no_progress: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressRange:
    """The run with the fewest and with the most expected interruptions."""

    best: RunProgress
    worst: RunProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """The share of time that is progress at this checkpoint interval."""

    interval_s: float
    progress: float


def time_shares(interval_s: float, policy: CheckpointPolicy, per_h: float) -> TimeShares:
    """The shares of the wall time.

    An interval t with stall C takes M exp(R/M) (exp((t + C)/M) - 1), where M is the mean time between failures and R
    the recovery time, including failures during recovery (Daly 2006, the complete model). Of that,
    M (exp((t + C)/M) - 1) is computing, of which t + C counts. Work done while a checkpoint is written, and lost with
    it, is added to R.
    """
    rate = per_h / _SECONDS_PER_HOUR
    stall_s, behind_s = policy.checkpointing.stall_s, policy.checkpointing.behind_s
    up = math.exp(-rate * (policy.recovery.total_s + behind_s))
    kept = up * _first_time(rate * (interval_s + stall_s))
    progress = kept * interval_s / (interval_s + stall_s)
    down = -math.expm1(-rate * policy.recovery.total_s)
    return TimeShares(progress=progress, checkpoints=kept - progress, lost=max(0.0, 1 - down - kept), recovery=down)


def run_progress(
    work_s: float, policy: CheckpointPolicy, per_h: float, *, interval_s: float | None = None, paid_s: float = 0.0
) -> RunProgress:
    """The run of this much work (more than 0 s), with checkpoints at this interval or the best one for `paid_s`.

    A run shorter than the interval has one checkpoint, at its end. An interval shorter than the write of a checkpoint
    is extended to the write time.
    """
    requested_s = best_interval_s(policy.checkpointing, per_h, paid_s=paid_s) if interval_s is None else interval_s
    interval = min(max(requested_s, SHORTEST_S, policy.checkpointing.behind_s), work_s)
    shares = time_shares(interval, policy, per_h)
    wall_s = work_s / shares.progress if shares.progress >= _MIN_PROGRESS else None
    return RunProgress(
        work_s=work_s,
        interval_s=interval,
        shares=shares,
        wall_s=wall_s,
        interruptions=None if wall_s is None else per_h * wall_s / _SECONDS_PER_HOUR,
        no_progress=_why_not(interval, policy, per_h) if wall_s is None else None,
    )


def progress_range(
    work_s: float,
    policy: CheckpointPolicy,
    interruptions: Interruptions,
    *,
    interval_s: float | None = None,
    paid_s: tuple[float, float] = (0.0, 0.0),
) -> ProgressRange:
    """The run with the fewest and with the most expected interruptions.

    Without an interval, each uses its best one, for the lowest and the highest charge of a checkpoint.
    """
    least_s, most_s = paid_s
    return ProgressRange(
        best=run_progress(work_s, policy, interruptions.low_per_h, interval_s=interval_s, paid_s=least_s),
        worst=run_progress(work_s, policy, interruptions.high_per_h, interval_s=interval_s, paid_s=most_s),
    )


def interval_penalty(best_s: float, other_s: float, policy: CheckpointPolicy, per_h: float) -> float | None:
    """The slowdown of the run by the other interval (0.1: ten percent); None if the run never ends.

    0 without interruptions, and if `best_s` is long because sending checkpoints is expensive.
    """
    if math.isinf(best_s):
        return 0.0
    best, other = (time_shares(interval, policy, per_h).progress for interval in (best_s, other_s))
    return max(0.0, best / other - 1) if min(best, other) >= _MIN_PROGRESS else None


def effective_time_curve(
    policy: CheckpointPolicy, per_h: float, *, shortest_s: float, longest_s: float, points: int = 60
) -> tuple[CurvePoint, ...]:
    """The share of time that is progress, for intervals from the shortest to the longest in equal ratios."""
    ratio = (longest_s / shortest_s) ** (1 / (points - 1))
    intervals = [shortest_s * ratio**step for step in range(points)]
    return tuple(
        CurvePoint(interval_s=interval, progress=time_shares(interval, policy, per_h).progress)
        for interval in intervals
    )


def _first_time(x: float) -> float:
    """x / (exp(x) - 1): the share of computing that counts, for intervals of x mean times between failures."""
    if x > _MAX_EXPONENT:
        return 0.0
    return x / math.expm1(x) if x else 1.0


def _why_not(interval_s: float, policy: CheckpointPolicy, per_h: float) -> str:
    stretch_s = interval_s + policy.checkpointing.stall_s + policy.recovery.total_s
    return (
        f"it is interrupted every {mtbf_s(per_h):,.0f} s on average, but needs {stretch_s:,.0f} s to recover and reach"
        " its next checkpoint"
    )
