"""Traffic of a run between zones: markets, bytes, cost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from declared_runs import environment, run

from corral.forecast.cost.catalog_prices import catalog_prices
from corral.forecast.cost.cost_range import Usd
from corral.forecast.cost.environment_cost import forecast_cost
from corral.forecast.cost.pool_capacity import pool_counts
from corral.forecast.run.market_forecast import MarketForecast
from corral.forecast.run.run_outlook import RunOutlook, forecast_outlook
from corral.forecast.run.transfer_charges import Flow, crossing_usd
from corral.forecast.storage_speed import Direction
from corral.model.cluster import OfferPlan, QueuePlan
from corral.model.enums import Market
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from worked_example import RoundPrices

TRAIN = environment()
BASE = plan_base(TRAIN.base)
CLUSTER = plan_cluster(TRAIN.cluster, BASE)  # its Lustre `data` is in use1-az1
PRICES = catalog_prices("us-east-1")  # 0.02 USD per GB from zone to zone
SENT = (Flow(way=Direction.WRITE, storage="data", low=1e12, high=3e12),)


def queue(*zones: str) -> QueuePlan:
    """A queue with spot in these zones."""
    offers = tuple(
        OfferPlan(key=zone, pool=1, market=Market.SPOT, zone_id=zone, max_price_usd_per_hour=None, placement_group=None)
        for zone in zones
    )
    return replace(CLUSTER.queues[0], offers=offers)


def usd(*zones: str, flows: tuple[Flow, ...] = SENT) -> Usd | None:
    return crossing_usd(CLUSTER, queue(*zones), Market.SPOT, iter(flows), PRICES)


@pytest.fixture(scope="module")
def whole() -> RunOutlook:
    """8B with a checkpoint every half hour that reads its tokens from the Lustre."""
    cost = forecast_cost(BASE, CLUSTER, PRICES)
    declared = run("llama3-8b", 16, checkpoint={"interval": "30m"}, loader={"from": "data"})
    return forecast_outlook(declared, BASE, CLUSTER, cost, PRICES, pool_counts(TRAIN.cluster))


def course(found: RunOutlook, market: Market) -> MarketForecast:
    (one,) = (one for one in found.markets if one.market is market)
    return one


def test_same_zone_has_no_cross_zone_traffic() -> None:
    assert usd("use1-az1") == Usd(0.0, 0.0)


def test_other_zone_sends_everything_across_zones() -> None:
    # 1,000 to 3,000 GB.
    assert usd("use1-az2") == Usd(20.0, 60.0)


def test_several_zones_give_a_range_from_none_to_all() -> None:
    assert usd("use1-az1", "use1-az2") == Usd(0.0, 60.0)


def test_efs_has_no_cross_zone_traffic() -> None:
    assert usd("use1-az2", flows=(Flow(way=Direction.WRITE, storage="home", low=1e12, high=3e12),)) == Usd(0.0, 0.0)


def test_transfers_add_up() -> None:
    assert usd("use1-az2", flows=(*SENT, Flow(way=Direction.WRITE, storage="data", low=5e11, high=5e11))) == Usd(
        30.0, 70.0
    )


def test_unbounded_traffic_has_no_cost() -> None:
    assert usd("use1-az2", flows=(Flow(way=Direction.WRITE, storage="data", low=1e12, high=None),)) is None


def test_unknown_price_gives_an_unknown_cost() -> None:
    assert crossing_usd(CLUSTER, queue("use1-az2"), Market.SPOT, iter(SENT), RoundPrices()) is None  # type: ignore[arg-type]  # by names


def test_market_in_the_zone_of_the_lustre_costs_nothing_more(whole: RunOutlook) -> None:
    assert course(whole, Market.RESERVATION).crossing == Usd(0.0, 0.0)


def test_a_checkpoint_is_written_once_and_read_at_each_interruption(whole: RunOutlook) -> None:
    # Spot may run in use1-az2. 112.4 GB each half an hour and each interruption, tokens of 4 bytes once.
    found, size = course(whole, Market.SPOT), 8_030_261_248 * 14
    worst = found.range.worst
    assert worst.interruptions is not None and found.crossing is not None
    saved = size * (whole.training.days * 86_400 / 1800 + worst.interruptions)
    assert found.crossing.high == pytest.approx((saved + 4e12) * 0.02 / 1e9)


def test_cross_zone_traffic_is_a_charge_of_the_run(whole: RunOutlook) -> None:
    found = course(whole, Market.SPOT)
    charged = [charge.usd for charge in found.charges if charge.what == "cross-zone traffic: checkpoints, tokens"]
    assert charged == [found.crossing]


def declared(interval: str) -> RunOutlook:
    """8B with this checkpoint interval, on a Lustre in another zone than some of its spot machines."""
    cost = forecast_cost(BASE, CLUSTER, PRICES)
    saves = run("llama3-8b", 16, checkpoint={"interval": interval})
    return forecast_outlook(saves, BASE, CLUSTER, cost, PRICES, pool_counts(TRAIN.cluster))


def test_high_cross_zone_cost_is_a_warning() -> None:
    (warning,) = (one for one in declared("1m").warnings if "cross-zone" in one)
    assert warning.endswith("use a longer checkpoint.interval, or restrict the market to the zone of the file system")


def at_worst_s(found: RunOutlook, market: Market) -> float:
    return course(found, market).range.worst.interval_s


def test_expensive_cross_zone_checkpoints_lengthen_the_interval() -> None:
    # 112.4 GB are 2.25 USD from zone to zone: 28.7 s of 16 machines for 282 USD/h. Interrupted every 62 h at worst:
    # sqrt(2 28.7 223,280) = 3,580 s, instead of the 92 s of the copy alone (0.018 s) within the zone.
    found = declared("choose")
    assert at_worst_s(found, Market.SPOT) == pytest.approx(3580, rel=0.01)
    assert at_worst_s(found, Market.RESERVATION) == pytest.approx(92, abs=1)


def test_chosen_interval_costs_less_than_that_of_time_alone() -> None:
    chosen, by_time = course(declared("choose"), Market.SPOT).usd.usd, course(declared("28s"), Market.SPOT).usd.usd
    assert chosen is not None and by_time is not None
    assert chosen.high < by_time.high
