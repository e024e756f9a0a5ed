"""The cost of a cluster's history at the environment's current prices, and a run's forecast."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from corral.cli.support.env_summary import EnvironmentSummary
from corral.cli.support.plan_service import PlanOptions, compute_plan
from corral.cli.support.timeline_data import ClusterHistory
from corral.forecast.cost.catalog_prices import catalog_prices
from corral.forecast.run.run_outlook import RunOutlook
from corral.report.usage.forecast_vs_actual import ForecastComparison, compare_with_forecast, interval_of
from corral.report.usage.machine_rates import Rates
from corral.report.usage.usage_summary import Usage, compute_usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """The rates of the environment, and the forecast of a run if one is given."""

    rates: Rates
    run: RunOutlook | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CostReport:
    """The cost of a history and its comparison with a forecast. `problem`: why one of them is missing."""

    usage: Usage | None
    comparison: ForecastComparison | None = None
    problem: str = ""


def read_pricing(summary: EnvironmentSummary, run: Path | None) -> Pricing | None:
    """The rates for an environment; None if its files have errors, since prices follow the plan.

    Raises SpecErrors if the run file has errors.
    """
    if summary.spec is None:
        return None
    now = compute_plan(summary.spec, PlanOptions(run=run, compare=None, buy=None, live=False))
    prices = catalog_prices(now.cluster.region, summary.spec.catalog)
    return Pricing(rates=Rates(cluster=now.cluster, cost=now.cost, prices=prices), run=now.run)


def cost_report(pricing: Pricing | None, history: ClusterHistory) -> CostReport:
    """The cost of the time shown, compared with the run's forecast."""
    if pricing is None:
        return CostReport(usage=None, problem="no costs are shown, because the environment's files have errors")
    interval_s = None if pricing.run is None else interval_of(pricing.run)
    shown = history.timeline
    usage = compute_usage(
        history.events, history.runs, pricing.rates, start=shown.start, end=shown.end, interval_s=interval_s
    )
    comparison = None if pricing.run is None else compare_with_forecast(usage, pricing.run)
    problem = ""
    if pricing.run is not None and comparison is None:
        problem = f"no job of queue {pricing.run.spec.queue} has run: nothing to compare the forecast with"
    return CostReport(usage=usage, comparison=comparison, problem=problem)
