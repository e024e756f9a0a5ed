"""The cost of saving too rarely: one checkpoint a day instead of the best interval, with the most interruptions."""

from __future__ import annotations

from dataclasses import dataclass

from corral.forecast.checkpoint_interval import best_interval_s
from corral.forecast.checkpoint_policy import CheckpointPolicy
from corral.forecast.cost.cost_range import Usd
from corral.forecast.goodput import interval_penalty
from corral.forecast.run.market_forecast import MarketForecast
from corral.model.enums import Market

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPenalty:
    """The penalty in one market. `longer`: the slowdown relative to the best interval; None if the run never ends.

    `usd`: the additional cost of nodes; None if unknown.
    """

    market: Market
    longer: float | None
    usd: Usd | None


def daily_checkpoint_penalty(market: MarketForecast, policy: CheckpointPolicy) -> CheckpointPenalty:
    """The penalty of one checkpoint per 24 hours of computing, with the most interruptions."""
    per_h = market.interruptions.high_per_h
    best_s = best_interval_s(policy.checkpointing, per_h, paid_s=market.paid_s[1])
    longer = interval_penalty(best_s, _DAY_S, policy, per_h)
    nodes = market.charges[0].usd
    return CheckpointPenalty(
        market=market.market, longer=longer, usd=nodes.times(longer) if nodes and longer is not None else None
    )
