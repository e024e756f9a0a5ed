"""A declared run as a whole: saving, interruptions, time and money in each market, power."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from declared_runs import environment, run

from corral.forecast.capacity import pool_counts
from corral.forecast.catalogue import catalogue_prices
from corral.forecast.cost import forecast_cost
from corral.forecast.money import Usd
from corral.forecast.whole.course import Course
from corral.forecast.whole.run import WholeRun, forecast_whole
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.model.markets import Market
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster

TRAIN = environment()
BASE: BasePlan = plan_base(TRAIN.base)
CLUSTER: ClusterPlan = plan_cluster(TRAIN.cluster, BASE)
PRICES = catalogue_prices(CLUSTER.region)


def whole(model: str = "llama3-8b", nodes: int = 16, *, base: BasePlan = BASE, **fields: Any) -> WholeRun:
    """The run in `train`, whose reservation and block hold 16 machines each."""
    cost = forecast_cost(base, CLUSTER, PRICES)
    counts = pool_counts(TRAIN.cluster)
    return forecast_whole(run(model, nodes, **fields), base, CLUSTER, cost, PRICES, counts)


@pytest.fixture(scope="module")
def small() -> WholeRun:
    """8B on 16 machines, its layout chosen."""
    return whole()


def in_market(found: WholeRun, market: Market) -> Course:
    (course,) = (one for one in found.courses if one.market is market)
    return course


def test_a_checkpoint_of_8b_has_14_bytes_of_each_parameter(small: WholeRun) -> None:
    assert small.saving is not None
    assert (small.saving.place, round(small.saving.size.size_bytes / 1e9, 1)) == ("data", 112.4)


def test_lustre_takes_it_at_what_its_disks_write(small: WholeRun) -> None:
    # 19,200 GiB of PERSISTENT_2 at 250 MB/s for each TiB: 18.75 x 250 = 4,687.5 MB/s.
    assert small.saving is not None
    assert (small.saving.write.bytes_per_s, small.saving.write.limit) == (4_687_500_000, "disks")


def test_a_copy_in_the_hosts_memory_lets_the_run_go_on(small: WholeRun) -> None:
    # 112.4 GB on 128 accelerators, 50 GB/s each.
    assert small.saving is not None
    assert small.saving.habits.checkpointing.stall_s == pytest.approx(112.43e9 / 128 / 50e9, rel=1e-3)


def test_a_run_that_does_not_copy_waits_until_it_is_written() -> None:
    found = whole(checkpoint={"asynchronous": False}).saving
    assert found is not None
    assert found.habits.checkpointing.stall_s == found.write_s


def test_the_interval_that_is_declared_is_kept(small: WholeRun) -> None:
    declared = whole(checkpoint={"interval": "30m"})
    assert [one.range.best.interval_s for one in declared.courses] == [1800.0, 1800.0, 1800.0]


def test_every_market_of_the_queue_has_a_course_in_its_order(small: WholeRun) -> None:
    assert [one.market for one in small.courses] == [Market.CAPACITY_BLOCK, Market.RESERVATION, Market.SPOT]


def test_nodes_cost_their_price_times_the_hours(small: WholeRun) -> None:
    course = in_market(small, Market.RESERVATION)
    nodes, hours = course.charges[0], course.days.times(24)
    assert nodes.usd is not None
    assert (nodes.what, nodes.usd.low) == ("16 p5.48xlarge, reservation", pytest.approx(16 * 55.04 * hours.low))


def test_the_sum_is_that_of_all_charges(small: WholeRun) -> None:
    course = small.courses[0]
    total = sum(charge.usd.high for charge in course.charges if charge.usd)
    assert course.usd.usd is not None
    assert course.usd.usd.high == pytest.approx(total)


def test_head_network_and_file_system_are_in_the_cost(small: WholeRun) -> None:
    names = [charge.what.partition(" (")[0] for charge in small.courses[0].charges]
    assert names[2:5] + names[8:11] == [
        "head, m7i.4xlarge", "head's volumes", "private DNS zone",
        "public address of the NAT gateway", "KMS key", "Lustre data, PERSISTENT_2 SSD 250",
    ]  # fmt: skip


def by_the_market(found: WholeRun) -> tuple[float, float]:
    """What spot adds to the interruptions in an hour, at least and at most."""
    spot, reserved = (in_market(found, market).interruptions for market in (Market.SPOT, Market.RESERVATION))
    return spot.low_per_h - reserved.low_per_h, spot.high_per_h - reserved.high_per_h


def test_spot_is_interrupted_by_the_market_as_the_advisor_says_of_type_and_region(small: WholeRun) -> None:
    # p5.48xlarge in us-east-1: under 5% of 16 instances in a month, -ln(0.95) / 730 h each.
    assert by_the_market(small) == (0.0, pytest.approx(16 * 0.051293 / 730, rel=1e-4))


def test_a_run_file_knows_better_how_often_spot_machines_are_taken() -> None:
    # From -ln(0.85) to -ln(0.8).
    found = by_the_market(whole(spot_interruptions="15-20%"))
    assert found == (pytest.approx(16 * 0.162519 / 730, rel=1e-4), pytest.approx(16 * 0.223144 / 730, rel=1e-4))


def test_the_band_without_an_end_is_taken_to_end_at_a_half() -> None:
    assert by_the_market(whole(spot_interruptions=">20%"))[1] == pytest.approx(16 * 0.693147 / 730, rel=1e-4)


@pytest.mark.parametrize(
    ("fields", "assumed"),
    [
        ({}, "spot: <5% of p5.48xlarge in us-east-1 are taken back in a month (AWS Spot Instance Advisor, a copy"),
        ({"spot_interruptions": ">20%"}, "spot: >20% (taken to end at 50%) of p5.48xlarge in us-east-1"),
        ({"instance_type": "p5e.48xlarge"}, "spot: none to 50% of p5e.48xlarge in us-east-1 are taken back in a month"),
    ],
)
def test_it_is_told_how_often_spot_is_taken_to_be_interrupted(fields: dict[str, str], assumed: str) -> None:
    assert [one for one in whole(**fields).assumed if one.startswith(assumed)] != []


def test_days_are_from_the_fastest_without_to_the_slowest_with_interruptions(small: WholeRun) -> None:
    course, (low, high) = small.courses[2], small.training.days_range
    assert course.days.low == pytest.approx(low * course.range.best.wall_s / course.range.best.work_s)  # type: ignore[operator]  # it ends
    assert course.days.high == pytest.approx(high / course.range.worst.shares.progress)


def test_a_market_that_cannot_give_all_nodes_is_told() -> None:
    found = whole(nodes=32, batch_sequences=1024)
    assert [(one.market.value, one.enough) for one in found.courses] == [
        ("capacity-block", False),
        ("reservation", True),
        ("spot", True),
    ]
    assert "capacity-block cannot give all 32 nodes of the run" in found.warnings


def test_checkpoints_on_a_home_are_paid_for_by_the_gb() -> None:
    # 112.4 GB each half an hour, written for 0.06 USD a GB, and read for 0.03 at each interruption.
    found = whole(checkpoint={"interval": "30m", "to": "home"})
    course, size_gb = found.courses[0], 8_030_261_248 * 14 / 1e9
    charge, least = course.charges[-1], course.range.best.interruptions
    assert charge.usd is not None
    assert least is not None
    assert (charge.what, charge.usd.low) == (
        "EFS: checkpoints and tokens, written and read",
        pytest.approx(size_gb * (found.training.days * 48 * 0.06 + least * 0.03)),
    )


def test_checkpoints_on_lustre_are_no_traffic_of_the_home(small: WholeRun) -> None:
    assert [one.what for one in small.courses[0].charges if "EFS" in one.what] == []


def test_a_home_with_bursting_throughput_is_paid_for_by_its_size_alone() -> None:
    assert BASE.home is not None
    bursting = replace(BASE, home=replace(BASE.home, throughput="bursting"))
    found = whole(base=bursting, checkpoint={"interval": "30m", "to": "home"})
    assert found.courses[0].charges[-1].what == "data: tokens in the bucket, checkpoints on EFS"


def test_of_a_model_that_does_not_fit_no_time_and_no_cost_is_told() -> None:
    found = whole("llama3-405b", 2, batch_sequences=256)
    assert (found.training.fits, found.courses, found.energy) == (False, (), None)


def test_an_environment_without_a_shared_file_system_has_nowhere_to_save() -> None:
    bare, cluster = replace(BASE, home=None, lustre=()), replace(CLUSTER, lustre=())
    cost = forecast_cost(bare, cluster, PRICES)
    found = forecast_whole(run("llama3-8b", 16), bare, cluster, cost, PRICES)
    assert (found.saving, found.courses) == (None, ())
    assert "the environment has no file system that its jobs share" in found.warnings[-1]


def test_without_lustre_it_saves_to_the_home() -> None:
    cluster = replace(CLUSTER, lustre=())
    found = forecast_whole(run("llama3-8b", 16), BASE, cluster, forecast_cost(BASE, cluster, PRICES), PRICES)
    assert found.saving is not None
    assert (found.saving.place, found.saving.write.limit) == ("home", "service")


def test_sixteen_p5_take_between_145_and_206_kilowatts(small: WholeRun) -> None:
    # Servers like DGX H100 of 10.2 kW at 0.7 to 1 of it, 10 % network, PUE 1.15.
    assert small.energy is not None
    assert (small.energy.kw.low, small.energy.kw.high) == (
        pytest.approx(16 * 10.2 * 0.7 * 1.1 * 1.15),
        pytest.approx(16 * 10.2 * 1.1 * 1.15),
    )


def test_a_checkpoint_that_takes_long_is_warned_of() -> None:
    found = whole("llama3-405b", 128, batch_sequences=2048)
    assert any("a checkpoint takes 20 min to be written" in one for one in found.warnings)


def test_checkpoints_that_the_file_system_cannot_hold_are_warned_of() -> None:
    # 200 x 14 bytes x 8,030,261,248 = 20,941 GiB, of 19,200.
    said = "200 checkpoints take 20,941 GiB, and data has 19,200 GiB - keep fewer (checkpoint.keep), or a larger one"
    assert said in whole(checkpoint={"keep": 200}).warnings


def test_a_cluster_that_ends_before_the_run_is_warned_of(small: WholeRun) -> None:
    said = "the cluster ends by itself after 14.0 days, the run may take longer - raise lifetime.ttl"
    assert (said in small.warnings, said in whole(tokens=2 * 10**12).warnings) == (False, True)


def test_only_what_is_stored_there_is_named(small: WholeRun) -> None:
    assert "data: tokens in the bucket" in [charge.what for charge in small.courses[0].charges]


def test_a_run_file_without_a_loader_says_nothing_of_loading(small: WholeRun) -> None:
    assert small.loading is None


def test_text_that_is_tokenised_before_costs_a_server(small: WholeRun) -> None:
    # 1T tokens of 4 bytes at 50 MB/s: 22.2 h of a c7i.24xlarge at 4.284 USD.
    found = whole(loader={"tokenize": "before"})
    charge = found.courses[0].charges[-1]
    assert charge.usd is not None
    assert (charge.what, charge.usd.low) == (
        "making tokens of the text, 22 h of c7i.24xlarge",
        pytest.approx(80_000 / 3600 * 4.284),
    )


def test_text_that_is_tokenised_meanwhile_is_read_and_costs_nothing_more() -> None:
    found = whole(loader={"tokenize": "while-training", "workers": 4})
    assert found.loading is not None
    assert found.loading.tokenizing is not None
    speed = found.training.speed.tokens_per_s
    assert (found.loading.workers, found.loading.bytes_per_s, found.loading.tokenizing.servers) == (
        512,
        pytest.approx(4 * speed),
        pytest.approx(4 * speed / 50e6),
    )
    assert [one.what for one in found.courses[0].charges if "tokens of the text" in one.what] == []


def test_a_file_is_read_as_often_as_its_size_says() -> None:
    found = whole(loader={"file_mib": 512}).loading
    assert found is not None
    assert found.files_per_s == pytest.approx(found.bytes_per_s / 512 / 2**20)


def test_the_age_of_the_nodes_prices_is_told(small: WholeRun) -> None:
    assert [one for one in small.assumed if one.startswith("price of")] == [
        "price of p5.48xlarge (capacity-block): notes of October 2026 on AWS's Capacity Blocks pricing page,"
        " 2026-10-07, second-hand",
        "price of p5.48xlarge (reservation, spot): skypilot-catalog v8 aws/vms.csv at 00148f2, after June 2025,"
        " second-hand; spot: a moment's cheapest and dearest zone",
    ]


def test_an_interval_that_is_shorter_than_a_write_is_warned_of(small: WholeRun) -> None:
    # 112.4 GB at 4.69 GB/s take 24 s.
    said = "checkpoint.interval 1s is shorter than the 24 s that one takes to be written - save less often, or choose"
    assert (said in small.warnings, said in whole(checkpoint={"interval": "1s"}).warnings) == (False, True)


def test_a_block_is_paid_for_by_whole_days() -> None:
    # 100B tokens take one day and some hours: two days of 16 machines for 47.76 USD an hour.
    found = in_market(whole(tokens="100B"), Market.CAPACITY_BLOCK)
    assert 1 < found.days.low < 1.5
    assert found.charges[0].usd is not None
    assert found.charges[0].usd.low == pytest.approx(2 * 24 * 16 * 47.76)


def test_energy_is_that_of_all_the_days(small: WholeRun) -> None:
    # In MWh; from the shortest to the longest of all markets.
    assert small.energy is not None and small.energy.mwh.high is not None
    longest = max(one.days.high or 0 for one in small.courses)
    assert (small.energy.mwh.low, small.energy.mwh.high) == (
        pytest.approx(small.energy.kw.low * min(one.days.low for one in small.courses) * 24 / 1000),
        pytest.approx((small.energy.kw.high or 0) * longest * 24 / 1000),
    )


def limited(usd: float) -> WholeRun:
    """The run on spot machines alone, for so many US dollars an hour at most."""
    (queue,) = CLUSTER.queues
    spot = tuple(replace(one, max_price_usd_per_hour=usd) for one in queue.offers if one.market is Market.SPOT)
    cluster = replace(CLUSTER, queues=(replace(queue, offers=spot),))
    return forecast_whole(run("llama3-8b", 16), BASE, cluster, forecast_cost(BASE, cluster, PRICES), PRICES)


def test_a_limit_below_every_price_leaves_no_market_and_says_so() -> None:
    found = limited(1.0)
    assert found.courses == ()
    said = "spot: no machine starts for 1.00 USD an hour (max_price), the cheapest zone known took 17.63 - raise it"
    assert said in found.warnings


def test_a_limit_above_the_price_is_no_matter() -> None:
    assert [one for one in limited(20.0).warnings if "max_price" in one] == []


def test_a_run_that_outlasts_every_capacity_block_is_warned_of(small: WholeRun) -> None:
    # 8B on 1T tokens takes two weeks, 70B on 15T tokens years.
    said = [
        [one for one in found.warnings if "a block lasts 182 days" in one]
        for found in (small, whole("llama3-70b", tokens="15T"))
    ]
    assert [len(one) for one in said] == [0, 1]


def test_machines_that_start_download_through_the_gateway(small: WholeRun) -> None:
    # 16 machines and one for each interruption, 10 GB each, at 0.045 USD.
    course = small.courses[0]
    charge, worst = course.charges[1], course.range.worst
    assert worst.interruptions is not None
    assert charge.usd is not None
    assert (charge.what, charge.usd.low, charge.usd.high) == (
        "NAT gateway: 10 GB for each machine that starts",
        pytest.approx((16 + (course.range.best.interruptions or 0)) * 0.45),
        pytest.approx((16 + worst.interruptions) * 0.45),
    )


def test_what_machines_download_can_be_said() -> None:
    assert whole(download_gb=0).courses[0].charges[1].usd == Usd.exact(0.0)
