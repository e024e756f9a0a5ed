"""The cost limit of a run file, and the refusal if the run exceeds it."""

from __future__ import annotations

from collections.abc import Sequence

from corral.forecast.cost.budget_limits import UNPRICED, CostLimit, dollars, excess_text
from corral.forecast.cost.cost_range import Sum
from corral.forecast.run.market_forecast import MarketForecast
from corral.forecast.run.run_outlook import RunOutlook
from corral.spec.spec_errors import SpecProblem


def total_limit(run: RunOutlook) -> CostLimit | None:
    """The limit of the run, for the most expensive market that can supply its nodes; None if the run file sets none.

    If no single market can supply them, the most expensive one counts.
    """
    field, usd = "usd_total_max", run.spec.usd_total_max
    if usd is None:
        return None
    cost, excess = _compare(run, [one for one in run.markets if one.enough] or run.markets, usd)
    refusal = excess.at((field,)).in_file(run.spec.file) if excess else None
    return CostLimit(field=field, usd=usd, cost=cost, refusal=refusal)


def _compare(run: RunOutlook, able: Sequence[MarketForecast], usd: float) -> tuple[Sum, SpecProblem | None]:
    """The cost that counts, and how it exceeds the limit; None if it does not."""
    if not able:
        message = f"{_why_not(run)}, so its cost is unknown; the limit is {dollars(usd)} USD"
        return Sum(usd=None), SpecProblem(message, "change that first")
    worst = max(able, key=_most)
    return worst.usd, _excess(run, able, worst, usd)


def _why_not(run: RunOutlook) -> str:
    if not run.training.fits:
        return "the run does not fit"
    return "no market of its queue can start nodes" if run.checkpoints else "the run has no file system for checkpoints"


def _excess(run: RunOutlook, able: Sequence[MarketForecast], worst: MarketForecast, usd: float) -> SpecProblem | None:
    """How the run exceeds the limit, and what to change; None if it does not."""
    market = worst.market.value
    others = f"remove {market} from the capacity of queue {run.spec.queue}"
    if worst.days.high is None:
        return SpecProblem(f"the duration of the run on {market} is unbounded; the limit is {dollars(usd)} USD", others)
    excess = excess_text(worst.usd, usd, f"the run on {market}")
    if excess is None:
        return None
    if worst.usd.missing:
        return SpecProblem(excess, UNPRICED)
    tokens = f"train on fewer than {run.spec.tokens / 1e9:,.0f} billion tokens, or raise the limit"
    cheaper = any(_most(one) < _most(worst) for one in able)
    return SpecProblem(excess, f"{others}, {tokens}" if cheaper else tokens)


def _most(market: MarketForecast) -> float:
    """The highest possible cost; infinite if a part of it is unknown."""
    usd = market.usd
    return float("inf") if usd.usd is None or usd.missing else usd.usd.high
