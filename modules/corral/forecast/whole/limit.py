"""The limit that a run file sets to the cost of its run, and what is said where it does not hold."""

from __future__ import annotations

from collections.abc import Sequence

from corral.forecast.limits import UNPRICED, Limit, dollars, trouble_of
from corral.forecast.money import Sum
from corral.forecast.whole.course import Course
from corral.forecast.whole.run import WholeRun


def total_limit(run: WholeRun) -> Limit | None:
    """The limit of the run, in the dearest market that can give its nodes; None where the run file sets none.

    Where no market alone can give them, the dearest of all counts.
    """
    field, usd = "usd_total_max", run.spec.usd_total_max
    if usd is None:
        return None
    able = [one for one in run.courses if one.enough] or run.courses
    if not able:
        why = _why_not(run)
        trouble = f"{why}, so that its cost is not known; the limit is {dollars(usd)} USD - change that first"
        return Limit(field=field, usd=usd, cost=Sum(usd=None), refusal=f"{run.spec.file}: {field}: {trouble}")
    worst = max(able, key=_most)
    refusal = _refusal(run, able, worst, usd)
    return Limit(
        field=field, usd=usd, cost=worst.usd, refusal=f"{run.spec.file}: {field}: {refusal}" if refusal else None
    )


def _why_not(run: WholeRun) -> str:
    if not run.training.fits:
        return "the run does not fit"
    return "its queue has no market that can start" if run.saving else "the run has no file system to save to"


def _refusal(run: WholeRun, able: Sequence[Course], worst: Course, usd: float) -> str | None:
    market = worst.market.value
    others = f"leave {market} out of the capacity of queue {run.spec.queue}"
    if worst.days.high is None:
        return f"nothing bounds how long the run takes by {market}; the limit is {dollars(usd)} USD - {others}"
    trouble = trouble_of(worst.usd, usd, f"the run by {market}")
    if trouble is None:
        return None
    if worst.usd.missing:
        return f"{trouble} - {UNPRICED}"
    tokens = f"train on fewer than {run.spec.tokens / 1e9:,.0f} billion tokens, or raise the limit"
    cheaper = any(_most(one) < _most(worst) for one in able)
    return f"{trouble} - {f'{others}, ' if cheaper else ''}{tokens}"


def _most(course: Course) -> float:
    """The most that it costs; without end where a part of that is not known."""
    usd = course.usd
    return float("inf") if usd.usd is None or usd.missing else usd.usd.high
