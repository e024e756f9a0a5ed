"""A declared run's forecast beside what became of it, by the largest job of its queue. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corral.forecast.money import Sum, Usd
from corral.forecast.whole.course import Course
from corral.forecast.whole.run import WholeRun
from corral.report.spent.jobs import JobCost
from corral.report.spent.ledger import Spent

_HOURS_PER_DAY, _SECONDS_PER_DAY = 24, 86_400
_Ends = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """One figure: from `low` to `high` by the forecast of the whole run, from `least` to `most` so far.

    None: not known, or no bound.
    """

    what: str
    low: float | None
    high: float | None
    least: float | None
    most: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The figures of a run. `done`: the job has completed; else what was so far is a part of it.

    `nodes`: the most that the job had at a time, `planned`: those of the forecast. `markets`: those that its machines
    were from, of which the forecast is.
    """

    job_id: str
    name: str
    done: bool
    nodes: int
    planned: int
    markets: tuple[str, ...]
    rows: tuple[Beside, ...]


def interval_of(whole: WholeRun) -> float | None:
    """How often the run saves, in seconds: as declared, else the longest that the forecast takes. None: not known."""
    declared = whole.spec.checkpoint.interval if whole.spec.checkpoint else None
    if declared is not None:
        return declared.total_seconds()
    return max((one.range.best.interval_s for one in whole.courses), default=None)


def compare(took: Spent, whole: WholeRun) -> Comparison | None:
    """The forecast of the run beside its job; None where no job of its queue has run, or the run has no forecast."""
    ran = [one for one in took.jobs if one.queue == whole.spec.queue and one.node_s]
    if not ran or not whole.courses:
        return None
    job = max(ran, key=lambda one: one.node_s)
    used = {one.sold.market for one in took.machines if one.sold.queue == job.queue}
    courses = [one for one in whole.courses if one.market.value in used] or list(whole.courses)
    return Comparison(
        job_id=job.job_id,
        name=job.name,
        done=job.state == "completed",
        nodes=job.nodes,
        planned=whole.spec.nodes,
        markets=tuple(one.market.value for one in courses),
        rows=tuple(_rows(took, job, courses)),
    )


def _rows(took: Spent, job: JobCost, courses: Sequence[Course]) -> Iterator[Beside]:
    wall_s = (job.over - (job.began or job.over)).total_seconds()
    node_s = wall_s * job.nodes
    yield _row("days", [(one.days.low, one.days.high) for one in courses], _exact(wall_s / _SECONDS_PER_DAY))
    yield _row("USD for its nodes", [_ends(one.charges[0].usd) for one in courses], _sum_ends(job.usd))
    yield _row("USD for all of it", [_sum_ends(one.usd) for one in courses], _sum_ends(took.usd))
    own = [one for one in took.interruptions if job.job_id in one.jobs]
    yield _row("interruptions", [_interrupted(one) for one in courses], _exact(len(own)))
    lost = sum(one.lost_node_s for one in own)
    kept = (max(0.0, job.node_s - lost) / node_s, job.node_s / node_s) if node_s else (None, None)
    yield _row("part of the time that is progress", [_progress(one) for one in courses], kept)


def _row(what: str, forecast: Sequence[_Ends], so_far: _Ends) -> Beside:
    lows, highs = [low for low, _ in forecast if low is not None], [high for _, high in forecast if high is not None]
    return Beside(
        what=what,
        low=min(lows) if len(lows) == len(forecast) else None,
        high=max(highs) if len(highs) == len(forecast) else None,
        least=so_far[0],
        most=so_far[1],
    )


def _exact(value: float) -> _Ends:
    return value, value


def _ends(usd: Usd | None) -> _Ends:
    return (usd.low, usd.high) if usd else (None, None)


def _sum_ends(sum: Sum) -> _Ends:
    """As `_ends`; nothing bounds a sum of which a part is not known."""
    low, high = _ends(sum.usd)
    return low, None if sum.missing else high


def _interrupted(one: Course) -> _Ends:
    """How often the whole run is interrupted: the fewest in its shortest, the most in its longest."""
    rates, days = one.interruptions, one.days
    low = rates.low_per_h * days.low * _HOURS_PER_DAY
    return low, None if days.high is None else rates.high_per_h * days.high * _HOURS_PER_DAY


def _progress(one: Course) -> _Ends:
    return one.range.worst.shares.progress, one.range.best.shares.progress
