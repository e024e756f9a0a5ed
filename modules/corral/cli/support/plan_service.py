"""Computes everything that `corral plan` shows: the plan, its cost, and the results of its options.

Packages that only some options need are imported for those.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from corral.forecast.cost.budget_limits import CostLimit, hourly_limit
from corral.forecast.cost.catalog_prices import catalog_prices
from corral.forecast.cost.cost_model import CostForecast
from corral.forecast.cost.environment_cost import forecast_cost
from corral.forecast.cost.pool_capacity import Counts, pool_counts
from corral.forecast.cost.price_source import PriceList
from corral.forecast.declared_runs import with_forecasts
from corral.forecast.warnings import PlanWarning, limit_warnings, plan_warnings, replaced_type_warnings
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.yaml.environment import Environment

if TYPE_CHECKING:
    from corral.forecast.cost.rent_vs_buy import RentVsBuy
    from corral.forecast.run.comparison import Alternative
    from corral.forecast.run.run_outlook import RunOutlook
    from corral.preflight.live_prices import LivePrices


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What to compute besides the plan. `live`: use current prices of AWS instead of the catalog's."""

    run: Path | None
    compare: str | None
    buy: Path | None
    live: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult:
    """The plan of an environment with its cost, warnings and limits.

    `run`: the forecast of the run, None without --run. `rent_vs_buy`: renting compared with buying, None without --buy.
    """

    base: BasePlan
    cluster: ClusterPlan
    cost: CostForecast
    warnings: tuple[PlanWarning, ...]
    limits: tuple[CostLimit, ...]
    run: RunOutlook | None
    alternatives: tuple[Alternative, ...]
    rent_vs_buy: RentVsBuy | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inputs:
    """An environment's spec, plans, prices and cost."""

    spec: Environment
    base: BasePlan
    cluster: ClusterPlan
    counts: Counts
    prices: PriceList
    cost: CostForecast
    live: bool


def compute_plan(spec: Environment, options: PlanOptions) -> PlanResult:
    """Computes the result. Raises SpecErrors for wrong files and options, and botocore's errors with `live`."""
    inputs, warnings = _read_inputs(spec, live=options.live)
    run = _forecast(inputs, options.run) if options.run is not None else None
    limits = _limits(hourly_limit(spec.cluster, inputs.cluster, inputs.cost), run)
    known = plan_warnings(inputs.base, inputs.cluster, inputs.prices, inputs.counts)
    return PlanResult(
        base=inputs.base,
        cluster=inputs.cluster,
        cost=inputs.cost,
        warnings=(*limit_warnings(limits), *warnings, *replaced_type_warnings(spec.catalog), *known),
        limits=limits,
        run=replace(run, assumed=(*run.assumed, *(warning.text for warning in warnings))) if run else None,
        alternatives=_compared(inputs, run, options.compare) if run and options.compare is not None else (),
        rent_vs_buy=_bought(inputs, options.buy) if options.buy is not None else None,
    )


def _read_inputs(spec: Environment, *, live: bool) -> tuple[_Inputs, tuple[PlanWarning, ...]]:
    """The inputs of all computations, and warnings about missing live prices."""
    base = plan_base(spec.base)
    cluster = with_forecasts(plan_cluster(spec.cluster, base, catalog=spec.catalog), spec)
    counts, warnings = pool_counts(spec.cluster), tuple[PlanWarning, ...]()
    prices = catalog_prices(cluster.region, spec.catalog)
    if live:
        found = _live(spec, base, cluster, cluster.region, tuple(queue.instance_type for queue in cluster.queues))
        prices, warnings = found, found.warnings
    cost = forecast_cost(base, cluster, prices, counts)
    inputs = _Inputs(spec=spec, base=base, cluster=cluster, counts=counts, prices=prices, cost=cost, live=live)
    return inputs, warnings


def _live(spec: Environment, base: BasePlan, cluster: ClusterPlan, region: str, types: tuple[str, ...]) -> LivePrices:
    """The current prices of this environment's resources in a region, and of these instance types."""
    from corral.inventory.scan import open_session
    from corral.preflight.aws_query_cache import AwsQueryCache
    from corral.preflight.live_prices import live_prices, price_query

    fallback = catalog_prices(region, spec.catalog)
    own = [name for name, region_name in spec.catalog.own_prices if region_name == region]
    wanted = price_query(base, cluster, fallback, region=region, types=types, own=own, now=datetime.now(UTC))
    return live_prices(AwsQueryCache(open_session(region, quick=True)), wanted, fallback)


def _forecast(inputs: _Inputs, file: Path) -> RunOutlook:
    from corral.forecast.run.run_outlook import forecast_outlook
    from corral.spec.yaml.run_files import read_run

    run = read_run(file, inputs.spec)
    return forecast_outlook(run, inputs.base, inputs.cluster, inputs.cost, inputs.prices, inputs.counts)


def _compared(inputs: _Inputs, run: RunOutlook, words: str) -> tuple[Alternative, ...]:
    from corral.forecast.run.alternatives import parse_alternatives
    from corral.forecast.run.comparison import compare_alternatives

    catalog, here = inputs.spec.catalog, inputs.cluster.region
    wanted = parse_alternatives(words, run.spec.machine, here, catalog)
    types = tuple(machine.name for machine in wanted.machines)

    @cache
    def prices_of(region: str) -> PriceList:
        if inputs.live:
            return _live(inputs.spec, inputs.base, inputs.cluster, region, types)
        return catalog_prices(region, catalog)

    return compare_alternatives(run.spec, inputs.base, inputs.cluster, wanted, prices_of)


def _bought(inputs: _Inputs, file: Path) -> RentVsBuy:
    from corral.forecast.cost.pool_capacity import market_capacities
    from corral.forecast.cost.rent_vs_buy import compare_rent_vs_buy
    from corral.spec.yaml.buy_files import read_purchase

    purchase = read_purchase(file, inputs.spec)
    return compare_rent_vs_buy(
        purchase, market_capacities(inputs.cluster.queue(purchase.queue), inputs.prices, inputs.counts)
    )


def _limits(hourly: CostLimit | None, run: RunOutlook | None) -> tuple[CostLimit, ...]:
    """All configured limits, exceeded or not."""
    if run is None:
        return () if hourly is None else (hourly,)
    from corral.forecast.run.budget_check import total_limit

    return tuple(one for one in (hourly, total_limit(run)) if one)
