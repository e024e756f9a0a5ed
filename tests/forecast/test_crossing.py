"""What a run sends between zones: by which market, how many bytes, for how much."""

from __future__ import annotations

from dataclasses import replace

import pytest
from declared_runs import environment, run

from corral.forecast.capacity import pool_counts
from corral.forecast.catalogue import catalogue_prices
from corral.forecast.cost import forecast_cost
from corral.forecast.money import Usd
from corral.forecast.storage import Way
from corral.forecast.whole.course import Course
from corral.forecast.whole.crossing import Flow, crossing_usd
from corral.forecast.whole.run import WholeRun, forecast_whole
from corral.model.cluster import OfferPlan, QueuePlan
from corral.model.markets import Market
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from worked_example import RoundPrices

TRAIN = environment()
BASE = plan_base(TRAIN.base)
CLUSTER = plan_cluster(TRAIN.cluster, BASE)  # its Lustre `data` is in use1-az1
PRICES = catalogue_prices("us-east-1")  # 0.02 USD for a GB from zone to zone
SENT = (Flow(way=Way.WRITE, place="data", low=1e12, high=3e12),)


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
def whole() -> WholeRun:
    """8B that saves every half an hour and reads its tokens from the Lustre."""
    cost = forecast_cost(BASE, CLUSTER, PRICES)
    declared = run("llama3-8b", 16, checkpoint={"interval": "30m"}, loader={"from": "data"})
    return forecast_whole(declared, BASE, CLUSTER, cost, PRICES, pool_counts(TRAIN.cluster))


def course(found: WholeRun, market: Market) -> Course:
    (one,) = (one for one in found.courses if one.market is market)
    return one


def test_in_the_zone_of_the_file_system_nothing_is_sent() -> None:
    assert usd("use1-az1") == Usd(0.0, 0.0)


def test_in_another_zone_all_of_it_is_sent() -> None:
    # 1,000 to 3,000 GB.
    assert usd("use1-az2") == Usd(20.0, 60.0)


def test_of_several_zones_it_is_from_none_to_all() -> None:
    assert usd("use1-az1", "use1-az2") == Usd(0.0, 60.0)


def test_efs_is_in_every_zone() -> None:
    assert usd("use1-az2", flows=(Flow(way=Way.WRITE, place="home", low=1e12, high=3e12),)) == Usd(0.0, 0.0)


def test_several_flows_add_up() -> None:
    assert usd("use1-az2", flows=(*SENT, Flow(way=Way.WRITE, place="data", low=5e11, high=5e11))) == Usd(30.0, 70.0)


def test_what_nothing_bounds_has_no_cost() -> None:
    assert usd("use1-az2", flows=(Flow(way=Way.WRITE, place="data", low=1e12, high=None),)) is None


def test_without_a_price_it_is_not_known() -> None:
    assert crossing_usd(CLUSTER, queue("use1-az2"), Market.SPOT, iter(SENT), RoundPrices()) is None  # type: ignore[arg-type]  # by names


def test_a_market_in_the_zone_of_the_lustre_costs_nothing_more(whole: WholeRun) -> None:
    assert course(whole, Market.RESERVATION).crossing == Usd(0.0, 0.0)


def test_a_checkpoint_is_written_once_and_read_at_each_interruption(whole: WholeRun) -> None:
    # Spot may run in use1-az2. 112.4 GB each half an hour and each interruption, tokens of 4 bytes once.
    found, size = course(whole, Market.SPOT), 8_030_261_248 * 14
    worst = found.range.worst
    assert worst is not None and worst.interruptions is not None and found.crossing is not None
    saved = size * (whole.training.days * 86_400 / 1800 + worst.interruptions)
    assert found.crossing.high == pytest.approx((saved + 4e12) * 0.02 / 1e9)


def test_it_is_a_charge_of_the_run(whole: WholeRun) -> None:
    found = course(whole, Market.SPOT)
    charged = [charge.usd for charge in found.charges if charge.what == "cross-zone traffic: checkpoints, tokens"]
    assert charged == [found.crossing]


def test_much_of_it_is_warned_of() -> None:
    # Saved each minute, as Daly's interval is where a copy takes no time.
    cost = forecast_cost(BASE, CLUSTER, PRICES)
    found = forecast_whole(run("llama3-8b", 16), BASE, CLUSTER, cost, PRICES, pool_counts(TRAIN.cluster))
    (warning,) = (one for one in found.warnings if "another zone" in one)
    assert warning.endswith("save less often (checkpoint.interval), or keep the market to the zone of the file system")
