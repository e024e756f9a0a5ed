"""A declared run's forecast compared with the actual usage of the largest job of its queue. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corral.forecast.cost.cost_range import Sum, Usd
from corral.forecast.run.market_forecast import MarketForecast
from corral.forecast.run.run_outlook import RunOutlook
from corral.report.usage.job_usage import JobCost
from corral.report.usage.usage_summary import Usage

_HOURS_PER_DAY, _SECONDS_PER_DAY = 24, 86_400
_Ends = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastRow:
    """A figure: `low` to `high` in the forecast of the whole run, `least` to `most` so far. None: unknown.

    `fraction`: shown in percent.
    """

    what: str
    low: float | None
    high: float | None
    least: float | None
    most: float | None
    fraction: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastComparison:
    """The figures of a run. `completed`: False if the job still runs, so that its figures are partial.

    `nodes`: the maximum that the job had at a time; `planned`: those of the forecast. `markets`: those of its
    instances, whose forecast is shown.
    """

    job_id: str
    name: str
    completed: bool
    nodes: int
    planned: int
    markets: tuple[str, ...]
    rows: tuple[ForecastRow, ...]


def interval_of(whole: RunOutlook) -> float | None:
    """The checkpoint interval in seconds: as declared, otherwise the longest of the forecast; None if unknown."""
    declared = whole.spec.checkpoint.interval if whole.spec.checkpoint else None
    if declared is not None:
        return declared.total_seconds()
    return max((one.range.best.interval_s for one in whole.markets), default=None)


def compare_with_forecast(usage: Usage, whole: RunOutlook) -> ForecastComparison | None:
    """The forecast of the run compared with its job; None if no job of its queue has run or it has no forecast."""
    ran = [one for one in usage.jobs if one.queue == whole.spec.queue and one.node_s]
    if not ran or not whole.markets:
        return None
    job = max(ran, key=lambda one: one.node_s)
    used = {one.rate.market for one in usage.machines if one.rate.queue == job.queue}
    markets = [one for one in whole.markets if one.market.value in used] or list(whole.markets)
    return ForecastComparison(
        job_id=job.job_id,
        name=job.name,
        completed=job.state == "completed",
        nodes=job.nodes,
        planned=whole.spec.nodes,
        markets=tuple(one.market.value for one in markets),
        rows=tuple(_rows(usage, job, markets)),
    )


def _rows(usage: Usage, job: JobCost, markets: Sequence[MarketForecast]) -> Iterator[ForecastRow]:
    wall_s = (job.ended - (job.began or job.ended)).total_seconds()
    node_s = wall_s * job.nodes
    yield _row("days", [(one.days.low, one.days.high) for one in markets], _exact(wall_s / _SECONDS_PER_DAY))
    yield _row("USD for nodes", [_ends(one.charges[0].usd) for one in markets], _sum_ends(job.usd))
    yield _row("USD total", [_sum_ends(one.usd) for one in markets], _sum_ends(usage.usd))
    own = [one for one in usage.interruptions if job.job_id in one.jobs]
    yield _row("interruptions", [_interrupted(one) for one in markets], _exact(len(own)))
    lost = sum(one.lost_node_s for one in own)
    kept = (max(0.0, job.node_s - lost) / node_s, job.node_s / node_s) if node_s else (None, None)
    yield _row("progress", [_progress(one) for one in markets], kept, fraction=True)


def _row(what: str, forecast: Sequence[_Ends], so_far: _Ends, *, fraction: bool = False) -> ForecastRow:
    lows, highs = [low for low, _ in forecast if low is not None], [high for _, high in forecast if high is not None]
    return ForecastRow(
        what=what,
        low=min(lows) if len(lows) == len(forecast) else None,
        high=max(highs) if len(highs) == len(forecast) else None,
        least=so_far[0],
        most=so_far[1],
        fraction=fraction,
    )


def _exact(value: float) -> _Ends:
    return value, value


def _ends(usd: Usd | None) -> _Ends:
    return (usd.low, usd.high) if usd else (None, None)


def _sum_ends(sum: Sum) -> _Ends:
    """As `_ends`; a sum with an unknown part has no upper bound."""
    low, high = _ends(sum.usd)
    return low, None if sum.missing else high


def _interrupted(one: MarketForecast) -> _Ends:
    """The number of interruptions: the lowest rate in the shortest run, the highest in the longest."""
    rates, days = one.interruptions, one.days
    low = rates.low_per_h * days.low * _HOURS_PER_DAY
    return low, None if days.high is None else rates.high_per_h * days.high * _HOURS_PER_DAY


def _progress(one: MarketForecast) -> _Ends:
    return one.range.worst.shares.progress, one.range.best.shares.progress
