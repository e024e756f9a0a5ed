"""A declared run as a whole: checkpoints, interruptions, duration and cost per market, power."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from declared_runs import environment, run

from corral.forecast.cost.catalog_prices import catalog_prices
from corral.forecast.cost.cost_range import Usd
from corral.forecast.cost.environment_cost import forecast_cost
from corral.forecast.cost.pool_capacity import pool_counts
from corral.forecast.run.market_forecast import MarketForecast
from corral.forecast.run.run_outlook import RunOutlook, forecast_outlook
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.model.enums import Market
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster

TRAIN = environment()
BASE: BasePlan = plan_base(TRAIN.base)
CLUSTER: ClusterPlan = plan_cluster(TRAIN.cluster, BASE)
PRICES = catalog_prices(CLUSTER.region)


def whole(model: str = "llama3-8b", nodes: int = 16, *, base: BasePlan = BASE, **fields: Any) -> RunOutlook:
    """The run in `train`, whose reservation and block hold 16 machines each."""
    cost = forecast_cost(base, CLUSTER, PRICES)
    counts = pool_counts(TRAIN.cluster)
    return forecast_outlook(run(model, nodes, **fields), base, CLUSTER, cost, PRICES, counts)


@pytest.fixture(scope="module")
def small() -> RunOutlook:
    """8B on 16 machines, with a chosen layout."""
    return whole()


def in_market(found: RunOutlook, market: Market) -> MarketForecast:
    (course,) = (one for one in found.markets if one.market is market)
    return course


def test_a_checkpoint_of_8b_has_14_bytes_of_each_parameter(small: RunOutlook) -> None:
    assert small.checkpoints is not None
    assert (small.checkpoints.storage, round(small.checkpoints.size.size_bytes / 1e9, 1)) == ("data", 112.4)


def test_lustre_writes_a_checkpoint_at_the_rate_of_its_disks(small: RunOutlook) -> None:
    # 19,200 GiB of PERSISTENT_2 at 250 MB/s per TiB: 18.75 x 250 = 4,687.5 MB/s.
    assert small.checkpoints is not None
    assert (small.checkpoints.write.bytes_per_s, small.checkpoints.write.limit) == (4_687_500_000, "disks")


def test_asynchronous_checkpoint_stalls_only_for_the_copy(small: RunOutlook) -> None:
    # 112.4 GB on 128 accelerators, 50 GB/s each.
    assert small.checkpoints is not None
    assert small.checkpoints.policy.checkpointing.stall_s == pytest.approx(112.43e9 / 128 / 50e9, rel=1e-3)


def test_synchronous_checkpoint_stalls_until_it_is_written() -> None:
    found = whole(checkpoint={"asynchronous": False}).checkpoints
    assert found is not None
    assert found.policy.checkpointing.stall_s == found.write_s


def test_declared_interval_is_used(small: RunOutlook) -> None:
    declared = whole(checkpoint={"interval": "30m"})
    assert [one.range.best.interval_s for one in declared.markets] == [1800.0, 1800.0, 1800.0]


def test_every_market_of_the_queue_has_a_forecast_in_its_order(small: RunOutlook) -> None:
    assert [one.market for one in small.markets] == [Market.CAPACITY_BLOCK, Market.RESERVATION, Market.SPOT]


def test_nodes_cost_their_price_times_the_hours(small: RunOutlook) -> None:
    course = in_market(small, Market.RESERVATION)
    nodes, hours = course.charges[0], course.days.times(24)
    assert nodes.usd is not None
    assert (nodes.what, nodes.usd.low) == ("16 p5.48xlarge, reservation", pytest.approx(16 * 55.04 * hours.low))


def test_cost_is_the_sum_of_all_charges(small: RunOutlook) -> None:
    course = small.markets[0]
    total = sum(charge.usd.high for charge in course.charges if charge.usd)
    assert course.usd.usd is not None
    assert course.usd.usd.high == pytest.approx(total)


def test_head_network_and_file_system_are_in_the_cost(small: RunOutlook) -> None:
    names = [charge.what.partition(" (")[0] for charge in small.markets[0].charges]
    assert names[2:5] + names[8:11] == [
        "head, m7i.4xlarge", "head's volumes", "private DNS zone",
        "public address of the NAT gateway", "KMS keys", "Lustre data, PERSISTENT_2 SSD 250",
    ]  # fmt: skip


def by_the_market(found: RunOutlook) -> tuple[float, float]:
    """The hourly spot interruptions, lowest and highest."""
    spot, reserved = (in_market(found, market).interruptions for market in (Market.SPOT, Market.RESERVATION))
    return spot.low_per_h - reserved.low_per_h, spot.high_per_h - reserved.high_per_h


def test_spot_reclaim_rate_is_that_of_the_advisor_for_type_and_region(small: RunOutlook) -> None:
    # p5.48xlarge in us-east-1: under 5% of 16 instances in a month, -ln(0.95) / 730 h each.
    assert by_the_market(small) == (0.0, pytest.approx(16 * 0.051293 / 730, rel=1e-4))


def test_run_file_overrides_the_spot_reclaim_rate() -> None:
    # From -ln(0.85) to -ln(0.8).
    found = by_the_market(whole(spot_interruptions="15-20%"))
    assert found == (pytest.approx(16 * 0.162519 / 730, rel=1e-4), pytest.approx(16 * 0.223144 / 730, rel=1e-4))


def test_open_band_is_assumed_to_end_at_a_half() -> None:
    assert by_the_market(whole(spot_interruptions=">20%"))[1] == pytest.approx(16 * 0.693147 / 730, rel=1e-4)


@pytest.mark.parametrize(
    ("fields", "assumed"),
    [
        ({}, "spot: <5% of p5.48xlarge in us-east-1 are reclaimed per month (AWS Spot Instance Advisor, a copy"),
        ({"spot_interruptions": ">20%"}, "spot: >20% (assumed to end at 50%) of p5.48xlarge in us-east-1"),
        ({"instance_type": "p5e.48xlarge"}, "spot: 0 to 50% of p5e.48xlarge in us-east-1 are reclaimed per month"),
    ],
)
def test_assumed_spot_reclaim_rate_is_listed(fields: dict[str, str], assumed: str) -> None:
    assert [one for one in whole(**fields).assumed if one.startswith(assumed)] != []


def test_days_range_from_fastest_to_slowest_with_interruptions(small: RunOutlook) -> None:
    course, (low, high) = small.markets[2], small.training.days_range
    assert course.days.low == pytest.approx(low * course.range.best.wall_s / course.range.best.work_s)  # type: ignore[operator]  # it ends
    assert course.days.high == pytest.approx(high / course.range.worst.shares.progress)


def test_market_without_enough_nodes_is_a_warning() -> None:
    found = whole(nodes=32, batch_sequences=1024)
    assert [(one.market.value, one.enough) for one in found.markets] == [
        ("capacity-block", False),
        ("reservation", True),
        ("spot", True),
    ]
    assert "capacity-block cannot supply all 32 nodes of the run" in found.warnings


def test_checkpoints_on_a_home_are_billed_per_gb() -> None:
    # 112.4 GB each half hour, written for 0.06 USD per GB, and read for 0.03 at each interruption.
    found = whole(checkpoint={"interval": "30m", "to": "home"})
    course, size_gb = found.markets[0], 8_030_261_248 * 14 / 1e9
    charge, least = course.charges[-1], course.range.best.interruptions
    assert charge.usd is not None
    assert least is not None
    assert (charge.what, charge.usd.low) == (
        "EFS: checkpoints and tokens, written and read",
        pytest.approx(size_gb * (found.training.days * 48 * 0.06 + least * 0.03)),
    )


def test_checkpoints_on_lustre_are_not_billed_per_gb(small: RunOutlook) -> None:
    assert [one.what for one in small.markets[0].charges if "EFS" in one.what] == []


def test_home_with_bursting_throughput_is_billed_by_size_only() -> None:
    assert BASE.home is not None
    bursting = replace(BASE, home=replace(BASE.home, throughput="bursting"))
    found = whole(base=bursting, checkpoint={"interval": "30m", "to": "home"})
    assert found.markets[0].charges[-1].what == "data: tokens in the bucket, checkpoints on EFS"


def test_model_that_does_not_fit_has_no_duration_and_no_cost() -> None:
    found = whole("llama3-405b", 2, batch_sequences=256)
    assert (found.training.fits, found.markets, found.energy) == (False, (), None)


def test_environment_without_a_shared_file_system_has_no_checkpoints() -> None:
    bare, cluster = replace(BASE, home=None, lustre=()), replace(CLUSTER, lustre=())
    cost = forecast_cost(bare, cluster, PRICES)
    found = forecast_outlook(run("llama3-8b", 16), bare, cluster, cost, PRICES)
    assert (found.checkpoints, found.markets) == (None, ())
    assert "the environment has no shared file system" in found.warnings[-1]


def test_checkpoints_go_to_the_home_without_lustre() -> None:
    cluster = replace(CLUSTER, lustre=())
    found = forecast_outlook(run("llama3-8b", 16), BASE, cluster, forecast_cost(BASE, cluster, PRICES), PRICES)
    assert found.checkpoints is not None
    assert (found.checkpoints.storage, found.checkpoints.write.limit) == ("home", "service")


def test_sixteen_p5_take_between_145_and_206_kilowatts(small: RunOutlook) -> None:
    # Servers like DGX H100 of 10.2 kW at 0.7 to 1 of it, 10 % network, PUE 1.15.
    assert small.energy is not None
    assert (small.energy.kw.low, small.energy.kw.high) == (
        pytest.approx(16 * 10.2 * 0.7 * 1.1 * 1.15),
        pytest.approx(16 * 10.2 * 1.1 * 1.15),
    )


def test_slow_checkpoint_is_a_warning() -> None:
    found = whole("llama3-405b", 128, batch_sequences=2048)
    assert any("a checkpoint takes 20 min to write" in one for one in found.warnings)


def test_checkpoints_beyond_the_capacity_are_a_warning() -> None:
    # 200 x 14 bytes x 8,030,261,248 = 20,941 GiB, of 19,200.
    warning = (
        "200 checkpoints take 20,941 GiB, and data has 19,200 GiB - lower checkpoint.keep, or use a larger file system"
    )
    assert warning in whole(checkpoint={"keep": 200}).warnings


def test_cluster_lifetime_shorter_than_the_run_is_a_warning(small: RunOutlook) -> None:
    warning = "the cluster ends after 14.0 days (lifetime.ttl), the run may take longer - raise lifetime.ttl"
    assert (warning in small.warnings, warning in whole(tokens=2 * 10**12).warnings) == (False, True)


def test_data_charge_names_only_stored_data(small: RunOutlook) -> None:
    assert "data: tokens in the bucket" in [charge.what for charge in small.markets[0].charges]


def test_run_file_without_a_loader_has_no_loading_forecast(small: RunOutlook) -> None:
    assert small.data is None


def test_tokenization_before_the_run_costs_a_server(small: RunOutlook) -> None:
    # 1T tokens of 4 bytes at 50 MB/s: 22.2 h of a c7i.24xlarge at 4.284 USD.
    found = whole(loader={"tokenize": "before"})
    charge = found.markets[0].charges[-1]
    assert charge.usd is not None
    assert (charge.what, charge.usd.low) == (
        "tokenization, 22 h of c7i.24xlarge",
        pytest.approx(80_000 / 3600 * 4.284),
    )


def test_tokenization_during_the_run_reads_text_and_costs_nothing_more() -> None:
    found = whole(loader={"tokenize": "while-training", "workers": 4})
    assert found.data is not None
    assert found.data.tokenizing is not None
    speed = found.training.speed.tokens_per_s
    assert (found.data.workers, found.data.bytes_per_s, found.data.tokenizing.servers) == (
        512,
        pytest.approx(4 * speed),
        pytest.approx(4 * speed / 50e6),
    )
    assert [one.what for one in found.markets[0].charges if "tokens of the text" in one.what] == []


def test_file_interval_follows_from_the_file_size() -> None:
    found = whole(loader={"file_mib": 512}).data
    assert found is not None
    assert found.files_per_s == pytest.approx(found.bytes_per_s / 512 / 2**20)


def test_source_of_the_node_prices_is_listed(small: RunOutlook) -> None:
    assert [one for one in small.assumed if one.startswith("price of")] == [
        "price of p5.48xlarge (capacity-block): notes of October 2026 on AWS's Capacity Blocks pricing page,"
        " 2026-10-07, second-hand",
        "price of p5.48xlarge (reservation, spot): skypilot-catalog v8 aws/vms.csv at 00148f2, after June 2025,"
        " second-hand; spot: the cheapest and the most expensive zone at one time",
    ]


def test_interval_shorter_than_a_write_is_a_warning(small: RunOutlook) -> None:
    # 112.4 GB at 4.69 GB/s take 24 s.
    warning = (
        "checkpoint.interval 1s is shorter than the 24 s to write a checkpoint - use a longer interval, or omit it"
    )
    assert (warning in small.warnings, warning in whole(checkpoint={"interval": "1s"}).warnings) == (False, True)


def test_block_is_billed_in_whole_days() -> None:
    # 100B tokens take one day and some hours: two days of 16 machines for 47.76 USD an hour.
    found = in_market(whole(tokens="100B"), Market.CAPACITY_BLOCK)
    assert 1 < found.days.low < 1.5
    assert found.charges[0].usd is not None
    assert found.charges[0].usd.low == pytest.approx(2 * 24 * 16 * 47.76)


def test_energy_covers_all_days(small: RunOutlook) -> None:
    # In MWh; from the shortest to the longest of all markets.
    assert small.energy is not None and small.energy.mwh.high is not None
    longest = max(one.days.high or 0 for one in small.markets)
    assert (small.energy.mwh.low, small.energy.mwh.high) == (
        pytest.approx(small.energy.kw.low * min(one.days.low for one in small.markets) * 24 / 1000),
        pytest.approx((small.energy.kw.high or 0) * longest * 24 / 1000),
    )


def limited(usd: float) -> RunOutlook:
    """The run on spot machines only, with this hourly price limit."""
    (queue,) = CLUSTER.queues
    spot = tuple(replace(one, max_price_usd_per_hour=usd) for one in queue.offers if one.market is Market.SPOT)
    cluster = replace(CLUSTER, queues=(replace(queue, offers=spot),))
    return forecast_outlook(run("llama3-8b", 16), BASE, cluster, forecast_cost(BASE, cluster, PRICES), PRICES)


def test_limit_below_every_price_leaves_no_market_and_a_warning() -> None:
    found = limited(1.0)
    assert found.markets == ()
    warning = "spot: no machine starts at 1.00 USD an hour (max_price), the cheapest known zone costs 17.63 - raise it"
    assert warning in found.warnings


def test_limit_above_the_price_gives_no_warning() -> None:
    assert [one for one in limited(20.0).warnings if "max_price" in one] == []


def test_run_longer_than_every_capacity_block_is_a_warning(small: RunOutlook) -> None:
    # 8B on 1T tokens takes two weeks, 70B on 15T tokens years.
    warnings = [
        [one for one in found.warnings if "a block lasts at most 182 days" in one]
        for found in (small, whole("llama3-70b", tokens="15T"))
    ]
    assert [len(one) for one in warnings] == [0, 1]


def test_machine_starts_download_through_the_nat_gateway(small: RunOutlook) -> None:
    # 16 machines and one per interruption, 10 GB each, at 0.045 USD.
    course = small.markets[0]
    charge, worst = course.charges[1], course.range.worst
    assert worst.interruptions is not None
    assert charge.usd is not None
    assert (charge.what, charge.usd.low, charge.usd.high) == (
        "NAT gateway: 10 GB per machine start",
        pytest.approx((16 + (course.range.best.interruptions or 0)) * 0.45),
        pytest.approx((16 + worst.interruptions) * 0.45),
    )


def test_download_size_can_be_declared() -> None:
    assert whole(download_gb=0).markets[0].charges[1].usd == Usd.exact(0.0)
