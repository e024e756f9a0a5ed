"""Cost limits of an hour and of a run: when they hold, and the errors if not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from declared_runs import environment, run

from corral.forecast.cost.budget_limits import CostLimit, hourly_limit
from corral.forecast.cost.catalog_prices import catalog_prices
from corral.forecast.cost.cost_range import Usd
from corral.forecast.cost.environment_cost import forecast_cost
from corral.forecast.cost.pool_capacity import pool_counts
from corral.forecast.cost.price_source import InstanceRates, PriceList, ServiceRate
from corral.forecast.run.budget_check import total_limit
from corral.forecast.run.run_outlook import RunOutlook, forecast_outlook
from corral.model.enums import Market
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from worked_example import BASE, CLUSTER, RoundPrices

SPEC = environment().cluster.model_copy(update={"file": "spec.yaml"})
TRAIN = environment()
PLANS = (plan_base(TRAIN.base), plan_cluster(TRAIN.cluster, plan_base(TRAIN.base)))
PRICES = catalog_prices("us-east-1")


class Only:
    """A price list with some instance prices and free services."""

    def __init__(self, prices: Mapping[str, InstanceRates]) -> None:
        self.prices = prices

    def instance(self, instance_type: str) -> InstanceRates | None:
        return self.prices.get(instance_type)

    def service(self, service: str) -> ServiceRate | None:
        return ServiceRate(usd=0.0, source="services")


def hourly(usd: float, prices: PriceList) -> CostLimit:
    """The limit of the worked example: four p4d.24xlarge at up to 20, a head at 0.4, free services."""
    found = hourly_limit(
        SPEC.model_copy(update={"usd_per_hour_max": usd}), CLUSTER, forecast_cost(BASE, CLUSTER, prices)
    )
    assert found is not None
    return found


PRICED = Only(
    {
        "p4d.24xlarge": InstanceRates(on_demand=20.0, spot=None, source="x"),
        "m7i.2xlarge": InstanceRates(on_demand=0.4, spot=None, source="x"),
    }
)
FULLY_PRICED = Only(
    {
        "p4d.24xlarge": InstanceRates(on_demand=20.0, spot=Usd(2.0, 8.0), source="x"),
        "m7i.2xlarge": InstanceRates(on_demand=0.4, spot=None, source="x"),
    }
)
HEAD_ALONE = Only({"m7i.2xlarge": InstanceRates(on_demand=0.4, spot=None, source="x")})


def whole(model: str = "llama3-8b", nodes: int = 16, **fields: Any) -> RunOutlook:
    cost = forecast_cost(*PLANS, PRICES)
    return forecast_outlook(run(model, nodes, **fields), *PLANS, cost, PRICES, pool_counts(TRAIN.cluster))


@pytest.fixture(scope="module")
def unlimited() -> RunOutlook:
    return whole()


def total(found: RunOutlook, usd: float) -> CostLimit:
    spec = replace(found.spec, usd_total_max=usd)
    limit = total_limit(replace(found, training=replace(found.training, run=spec)))
    assert limit is not None
    return limit


def most(found: RunOutlook) -> float:
    """The upper end of the most expensive market."""
    return max(one.usd.usd.high for one in found.markets if one.usd.usd)


def test_no_limit_compares_nothing() -> None:
    assert hourly_limit(SPEC, CLUSTER, forecast_cost(BASE, CLUSTER, RoundPrices())) is None


def test_hour_at_the_limit_is_allowed() -> None:
    cost = forecast_cost(BASE, CLUSTER, FULLY_PRICED).maximum_usd_per_hour
    assert cost.usd is not None
    assert (cost.missing, hourly(cost.usd.high, FULLY_PRICED).refusal) == ((), None)


def test_fraction_of_a_cent_is_not_over_the_limit() -> None:
    # Both are shown in cents: 80.40 must not exceed a limit of 80.40.
    assert hourly(80.397, FULLY_PRICED).refusal is None


def test_hour_over_the_limit_names_cost_limit_and_fix() -> None:
    # Four nodes on demand at 20 and a head at 0.4: 80.40.
    assert str(hourly(80, FULLY_PRICED).refusal) == (
        "spec.yaml: usd_per_hour_max: an hour with all nodes running costs up to 80.40 USD, the limit is 80.00"
        " - lower nodes.max of queue train (4 p4d.24xlarge cost up to 80.00), or raise the limit"
    )


def test_upper_end_of_the_range_is_compared() -> None:
    # From spot at 2 to on-demand at 20: four nodes are 8 to 80.
    limit = hourly(50, FULLY_PRICED)
    assert (limit.cost.usd and limit.cost.usd.low, limit.refusal is None) == (pytest.approx(8.4), False)


def test_unknown_price_exceeds_every_limit() -> None:
    assert str(hourly(1e9, HEAD_ALONE).refusal) == (
        "spec.yaml: usd_per_hour_max: the cost of an hour with all nodes running is unknown: no known price for"
        " queue train: 4 p4d.24xlarge spot or on-demand; the limit is 1,000,000,000.00 USD"
        " - add the price to catalog.toml, use a type with a known price, or remove the limit"
    )


def test_known_part_over_the_limit_is_shown_as_at_least() -> None:
    # The spot price is unknown: at least the 80.40 of on-demand.
    assert "costs up to at least 80.40 USD, the limit is 80.00" in str(hourly(80, PRICED).refusal)


def test_run_at_the_limit_is_allowed(unlimited: RunOutlook) -> None:
    assert total(unlimited, most(unlimited)).refusal is None


def test_run_over_the_limit_names_its_most_expensive_market(unlimited: RunOutlook) -> None:
    usd = most(unlimited)
    assert str(total(unlimited, 1000).refusal) == (
        f"run.yaml: usd_total_max: the run on spot costs up to {usd:,.2f} USD, the limit is 1,000.00"
        " - remove spot from the capacity of queue train, train on fewer than 1,000 billion tokens, or raise the limit"
    )


def test_market_without_enough_nodes_does_not_count(unlimited: RunOutlook) -> None:
    markets = tuple(replace(one, enough=one.market != "spot") for one in unlimited.markets)
    assert "on reservation costs" in str(total(replace(unlimited, markets=markets), 1000).refusal)


def test_run_whose_queue_cannot_start_exceeds_every_limit() -> None:
    base, cluster = PLANS
    (queue,) = cluster.queues
    spot = tuple(replace(one, max_price_usd_per_hour=1.0) for one in queue.offers if one.market is Market.SPOT)
    dear = replace(cluster, queues=(replace(queue, offers=spot),))
    declared = run("llama3-8b", 16, usd_total_max=1000)
    found = total_limit(forecast_outlook(declared, base, dear, forecast_cost(base, dear, PRICES), PRICES))
    assert found is not None
    assert found.refusal is not None
    assert "no market of its queue can start nodes, so its cost is unknown" in found.refusal.message


def test_run_that_does_not_fit_exceeds_every_limit() -> None:
    assert str(total(whole("llama3-405b", 2, batch_sequences=256), 1e9).refusal) == (
        "run.yaml: usd_total_max: the run does not fit, so its cost is unknown;"
        " the limit is 1,000,000,000.00 USD - change that first"
    )
