"""The cost limit of a run file, and the refusal if the run exceeds it."""

from __future__ import annotations

from collections.abc import Sequence

from corral.forecast.cost.budget_limits import UNPRICED, CostLimit, dollars, excess_text
from corral.forecast.cost.cost_range import Sum
from corral.forecast.run.market_forecast import MarketForecast
from corral.forecast.run.run_outlook import RunOutlook


def total_limit(run: RunOutlook) -> CostLimit | None:
    """The limit of the run, for the most expensive market that can supply its nodes; None if the run file sets none.

    If no single market can supply them, the most expensive one counts.
    """
    field, usd = "usd_total_max", run.spec.usd_total_max
    if usd is None:
        return None
    able = [one for one in run.markets if one.enough] or run.markets
    if not able:
        why = _why_not(run)
        excess = f"{why}, so its cost is unknown; the limit is {dollars(usd)} USD - change that first"
        return CostLimit(field=field, usd=usd, cost=Sum(usd=None), refusal=f"{run.spec.file}: {field}: {excess}")
    worst = max(able, key=_most)
    refusal = _refusal(run, able, worst, usd)
    return CostLimit(
        field=field, usd=usd, cost=worst.usd, refusal=f"{run.spec.file}: {field}: {refusal}" if refusal else None
    )


def _why_not(run: RunOutlook) -> str:
    if not run.training.fits:
        return "the run does not fit"
    return "no market of its queue can start nodes" if run.checkpoints else "the run has no file system for checkpoints"


def _refusal(run: RunOutlook, able: Sequence[MarketForecast], worst: MarketForecast, usd: float) -> str | None:
    market = worst.market.value
    others = f"remove {market} from the capacity of queue {run.spec.queue}"
    if worst.days.high is None:
        return f"the duration of the run on {market} is unbounded; the limit is {dollars(usd)} USD - {others}"
    excess = excess_text(worst.usd, usd, f"the run on {market}")
    if excess is None:
        return None
    if worst.usd.missing:
        return f"{excess} - {UNPRICED}"
    tokens = f"train on fewer than {run.spec.tokens / 1e9:,.0f} billion tokens, or raise the limit"
    cheaper = any(_most(one) < _most(worst) for one in able)
    return f"{excess} - {f'{others}, ' if cheaper else ''}{tokens}"


def _most(market: MarketForecast) -> float:
    """The highest possible cost; infinite if a part of it is unknown."""
    usd = market.usd
    return float("inf") if usd.usd is None or usd.missing else usd.usd.high
