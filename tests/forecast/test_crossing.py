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
    assert worst.interruptions is not None and found.crossing is not None
    saved = size * (whole.training.days * 86_400 / 1800 + worst.interruptions)
    assert found.crossing.high == pytest.approx((saved + 4e12) * 0.02 / 1e9)


def test_it_is_a_charge_of_the_run(whole: WholeRun) -> None:
    found = course(whole, Market.SPOT)
    charged = [charge.usd for charge in found.charges if charge.what == "cross-zone traffic: checkpoints, tokens"]
    assert charged == [found.crossing]


def declared(interval: str) -> WholeRun:
    """8B that saves so often, to a Lustre in another zone than some of its spot machines."""
    cost = forecast_cost(BASE, CLUSTER, PRICES)
    saves = run("llama3-8b", 16, checkpoint={"interval": interval})
    return forecast_whole(saves, BASE, CLUSTER, cost, PRICES, pool_counts(TRAIN.cluster))


def test_much_of_it_is_warned_of() -> None:
    (warning,) = (one for one in declared("1m").warnings if "another zone" in one)
    assert warning.endswith("save less often (checkpoint.interval), or keep the market to the zone of the file system")


def at_worst_s(found: WholeRun, market: Market) -> float:
    return course(found, market).range.worst.interval_s


def test_a_market_from_which_checkpoints_are_dear_to_send_saves_less_often() -> None:
    # 112.4 GB are 2.25 USD from zone to zone: 28.7 s of 16 machines for 282 USD/h. Interrupted every 62 h at worst:
    # sqrt(2 28.7 223,280) = 3,580 s, where the copy alone, 0.018 s, says 92 s on machines that stay in the zone.
    found = declared("choose")
    assert at_worst_s(found, Market.SPOT) == pytest.approx(3580, rel=0.01)
    assert at_worst_s(found, Market.RESERVATION) == pytest.approx(92, abs=1)


def test_what_is_chosen_costs_less_than_saving_by_time_alone() -> None:
    chosen, by_time = course(declared("choose"), Market.SPOT).usd.usd, course(declared("28s"), Market.SPOT).usd.usd
    assert chosen is not None and by_time is not None
    assert chosen.high < by_time.high
