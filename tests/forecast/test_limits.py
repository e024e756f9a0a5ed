"""The limits of what an hour and a run may cost: when they hold, and what is said where they do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from declared_runs import environment, run

from corral.forecast.capacity import pool_counts
from corral.forecast.catalogue import catalogue_prices
from corral.forecast.cost import forecast_cost
from corral.forecast.limits import Limit, hourly_limit
from corral.forecast.money import Usd
from corral.forecast.prices import InstancePrice, PriceList, ServicePrice
from corral.forecast.whole.limit import total_limit
from corral.forecast.whole.run import WholeRun, forecast_whole
from corral.model.markets import Market
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from worked_example import BASE, CLUSTER, RoundPrices

SPEC = environment().cluster.model_copy(update={"file": "spec.yaml"})
TRAIN = environment()
PLANS = (plan_base(TRAIN.base), plan_cluster(TRAIN.cluster, plan_base(TRAIN.base)))
PRICES = catalogue_prices("us-east-1")


class Only:
    """A price list with some instances' prices and every service for nothing."""

    def __init__(self, prices: Mapping[str, InstancePrice]) -> None:
        self.prices = prices

    def instance(self, instance_type: str) -> InstancePrice | None:
        return self.prices.get(instance_type)

    def service(self, service: str) -> ServicePrice | None:
        return ServicePrice(usd=0.0, source="services")


def hourly(usd: float, prices: PriceList) -> Limit:
    """The limit of the worked example: four p4d.24xlarge at up to 20, a head at 0.4, with services for nothing."""
    found = hourly_limit(
        SPEC.model_copy(update={"usd_per_hour_max": usd}), CLUSTER, forecast_cost(BASE, CLUSTER, prices)
    )
    assert found is not None
    return found


PRICED = Only(
    {
        "p4d.24xlarge": InstancePrice(on_demand=20.0, spot=None, source="x"),
        "m7i.2xlarge": InstancePrice(on_demand=0.4, spot=None, source="x"),
    }
)
FULLY_PRICED = Only(
    {
        "p4d.24xlarge": InstancePrice(on_demand=20.0, spot=Usd(2.0, 8.0), source="x"),
        "m7i.2xlarge": InstancePrice(on_demand=0.4, spot=None, source="x"),
    }
)
HEAD_ALONE = Only({"m7i.2xlarge": InstancePrice(on_demand=0.4, spot=None, source="x")})


def whole(model: str = "llama3-8b", nodes: int = 16, **fields: Any) -> WholeRun:
    cost = forecast_cost(*PLANS, PRICES)
    return forecast_whole(run(model, nodes, **fields), *PLANS, cost, PRICES, pool_counts(TRAIN.cluster))


@pytest.fixture(scope="module")
def unlimited() -> WholeRun:
    return whole()


def total(found: WholeRun, usd: float) -> Limit:
    spec = replace(found.spec, usd_total_max=usd)
    limit = total_limit(replace(found, training=replace(found.training, run=spec)))
    assert limit is not None
    return limit


def most(found: WholeRun) -> float:
    """The upper end of the dearest market."""
    return max(one.usd.usd.high for one in found.courses if one.usd.usd)


def test_without_a_limit_nothing_is_compared() -> None:
    assert hourly_limit(SPEC, CLUSTER, forecast_cost(BASE, CLUSTER, RoundPrices())) is None


def test_an_hour_that_costs_the_limit_is_allowed() -> None:
    cost = forecast_cost(BASE, CLUSTER, FULLY_PRICED).maximum_usd_per_hour
    assert cost.usd is not None
    assert (cost.missing, hourly(cost.usd.high, FULLY_PRICED).refusal) == ((), None)


def test_a_part_of_a_cent_is_not_over_the_limit() -> None:
    # Both are shown in cents, and nobody refuses 80.40 for a limit of 80.40.
    assert hourly(80.397, FULLY_PRICED).refusal is None


def test_an_hour_over_the_limit_names_both_and_what_to_change() -> None:
    # Four nodes on demand at 20 and a head at 0.4: 80.40.
    assert hourly(80, FULLY_PRICED).refusal == (
        "spec.yaml: usd_per_hour_max: an hour with every node at work costs up to 80.40 USD, the limit is 80.00"
        " - lower nodes.max of queue train (its 4 p4d.24xlarge cost up to 80.00), or raise the limit"
    )


def test_the_range_is_compared_by_its_upper_end() -> None:
    # From spot at 2 to on-demand at 20: four nodes are 8 to 80.
    limit = hourly(50, FULLY_PRICED)
    assert (limit.cost.usd and limit.cost.usd.low, limit.refusal is None) == (pytest.approx(8.4), False)


def test_what_has_no_price_is_not_below_any_limit() -> None:
    assert hourly(1e9, HEAD_ALONE).refusal == (
        "spec.yaml: usd_per_hour_max: what an hour with every node at work costs is not known, no price is known for"
        " queue train: 4 p4d.24xlarge spot or on-demand; the limit is 1,000,000,000.00 USD"
        " - give the price in catalogue.toml, take what has one, or leave the limit out"
    )


def test_a_known_part_over_the_limit_is_told_as_such() -> None:
    # The spot price is not known: at least the 80.40 of on-demand.
    assert "costs up to at least 80.40 USD, the limit is 80.00" in str(hourly(80, PRICED).refusal)


def test_a_run_that_costs_the_limit_is_allowed(unlimited: WholeRun) -> None:
    assert total(unlimited, most(unlimited)).refusal is None


def test_a_run_over_the_limit_names_its_dearest_market(unlimited: WholeRun) -> None:
    usd = most(unlimited)
    assert total(unlimited, 1000).refusal == (
        f"run.yaml: usd_total_max: the run by spot costs up to {usd:,.2f} USD, the limit is 1,000.00"
        " - leave spot out of the capacity of queue train, train on fewer than 1,000 billion tokens, or raise the limit"
    )


def test_a_market_that_cannot_give_the_nodes_does_not_count(unlimited: WholeRun) -> None:
    courses = tuple(replace(one, enough=one.market != "spot") for one in unlimited.courses)
    assert "by reservation costs" in str(total(replace(unlimited, courses=courses), 1000).refusal)


def test_a_run_whose_queue_cannot_start_is_below_no_limit() -> None:
    base, cluster = PLANS
    (queue,) = cluster.queues
    spot = tuple(replace(one, max_price_usd_per_hour=1.0) for one in queue.offers if one.market is Market.SPOT)
    dear = replace(cluster, queues=(replace(queue, offers=spot),))
    declared = run("llama3-8b", 16, usd_total_max=1000)
    found = total_limit(forecast_whole(declared, base, dear, forecast_cost(base, dear, PRICES), PRICES))
    assert found is not None
    assert found.refusal is not None
    assert "its queue has no market that can start, so that its cost is not known" in found.refusal


def test_a_run_that_does_not_fit_is_below_no_limit() -> None:
    assert total(whole("llama3-405b", 2, batch_sequences=256), 1e9).refusal == (
        "run.yaml: usd_total_max: the run does not fit, so that its cost is not known;"
        " the limit is 1,000,000,000.00 USD - change that first"
    )
