"""The cost of the worked example, in round prices for mental arithmetic."""

from dataclasses import replace
from typing import Any

from declared_runs import environment

from corral.forecast.cost.catalog_prices import catalog_prices
from corral.forecast.cost.cost_model import CostForecast
from corral.forecast.cost.cost_range import HOURS_PER_MONTH, Sum, Usd
from corral.forecast.cost.environment_cost import forecast_cost
from corral.forecast.cost.pool_capacity import offer_usd_per_hour, pool_counts
from corral.forecast.cost.price_source import InstanceRates
from corral.model.base import BasePlan, HomePlan
from corral.model.cluster import ClusterPlan, OfferPlan
from corral.model.enums import Market
from corral.model.lustre import LustrePlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.loader import parse_base, parse_cluster
from corral.spec.validation_context import ValidationContext
from worked_example import BASE, CLUSTER, QUEUE, RoundPrices

PRICES = RoundPrices()
COST = forecast_cost(BASE, CLUSTER, PRICES)
SPOT, ON_DEMAND = QUEUE.offers


def cents(usd: Usd | None) -> tuple[float, float] | None:
    return None if usd is None else (round(usd.low, 4), round(usd.high, 4))


def hourly(cost: CostForecast) -> dict[str, tuple[float, float] | None]:
    return {item.what: cents(item.usd_per_hour) for item in (*cost.base, *cost.cluster)}


def test_every_idle_resource_has_its_hourly_cost() -> None:
    assert hourly(COST) == {
        "NAT gateway": (0.05, 0.05),
        "public address of the NAT gateway": (0.005, 0.005),
        "interface endpoints x zones": (0.04, 0.04),
        "KMS keys": (0.01, 0.01),
        "head, m7i.2xlarge": (0.4, 0.4),
        "head's volumes": (0.02, 0.02),
        "Lustre scratch, SCRATCH_2": (0.24, 0.24),
        "private DNS zone": (0.001, 0.001),
        "secret": (0.001, 0.001),
        "alarm": None,
        "queue train, p4d.24xlarge": (2.0, 20.0),
    }


def test_idle_base_is_summed_for_a_month_of_730_hours() -> None:
    assert cents(COST.idle_base_usd_per_month.usd) == (76.65, 76.65)


def test_idle_cluster_counts_head_storage_and_static_nodes() -> None:
    assert cents(COST.idle_cluster_usd_per_hour.usd) == (2.662, 20.662)


def test_maximum_goes_from_all_spot_to_all_on_demand_and_counts_static_nodes_once() -> None:
    assert cents(COST.maximum_usd_per_hour.usd) == (0.105 + 0.662 + 8.0, 0.105 + 0.662 + 80.0)


def train() -> tuple[BasePlan, ClusterPlan]:
    """An environment with a capacity block and a reservation."""
    wanted = environment()
    base = plan_base(wanted.base)
    return base, plan_cluster(wanted.cluster, base)


def test_reserved_capacity_costs_money_without_nodes() -> None:
    # 16 p5.48xlarge for 55.04 on demand, and as many of a block for 47.76.
    found = forecast_cost(*train(), catalog_prices("us-east-1"), {("train", 1): 16, ("train", 2): 16})
    assert cents(found.reserved_usd_per_hour.usd) == (880.64 + 764.16, 880.64 + 764.16)


def test_reserved_capacity_without_a_count_is_named() -> None:
    missing = forecast_cost(*train(), catalog_prices("us-east-1")).reserved_usd_per_hour.missing
    assert missing == (
        "queue train: capacity-block 1 of p5.48xlarge",
        "queue train: reservation 2 of p5.48xlarge",
    )


def test_only_the_key_is_retained_at_a_fixed_price() -> None:
    assert cents(COST.retained_usd_per_month.usd) == (3.65, 3.65)


def test_stored_data_is_retained_and_traffic_is_not() -> None:
    assert [(use.what, use.usd, use.retained) for use in COST.by_use] == [
        ("bucket: objects stored", 0.02, True),
        ("home: files stored", 0.3, True),
        ("home: files read", None, False),
        ("home: files written", None, False),
        ("root volume of a node: 200 GiB", 0.1, False),
        ("traffic through the NAT gateway", 0.04, False),
    ]


def test_queue_has_a_row_for_each_market_in_the_order_of_its_offers() -> None:
    assert [(row.market, row.nodes, cents(row.usd_per_hour)) for row in COST.queues] == [
        (Market.SPOT, 4, (8.0, 24.0)),
        (Market.ON_DEMAND, 4, (80.0, 80.0)),
    ]


def test_price_limit_caps_the_spot_range() -> None:
    assert cents(offer_usd_per_hour(SPOT, "p4d.24xlarge", PRICES)) == (2.0, 6.0)


def test_spot_offer_without_a_limit_has_the_whole_range() -> None:
    open_ended = replace(SPOT, max_price_usd_per_hour=None)
    assert cents(offer_usd_per_hour(open_ended, "p4d.24xlarge", PRICES)) == (2.0, 8.0)


def test_limit_below_the_cheapest_zone_starts_nothing_and_is_no_lower_bound() -> None:
    low = replace(SPOT, max_price_usd_per_hour=1.5)
    assert offer_usd_per_hour(low, "p4d.24xlarge", PRICES) is None
    cost = forecast_cost(BASE, with_offers(low, ON_DEMAND), PRICES)
    assert [(row.market, row.starts, row.usd_per_hour) for row in cost.queues] == [
        (Market.SPOT, False, None),
        (Market.ON_DEMAND, True, Usd(80.0, 80.0)),
    ]
    assert cents(cost.maximum_usd_per_hour.usd) == (0.105 + 0.662 + 80.0, 0.105 + 0.662 + 80.0)
    assert cost.unknown == ("alarm",)


def test_limit_at_the_cheapest_zone_starts_there() -> None:
    enough = replace(SPOT, max_price_usd_per_hour=2.0)
    assert cents(offer_usd_per_hour(enough, "p4d.24xlarge", PRICES)) == (2.0, 2.0)


def with_offers(*offers: OfferPlan, **more: Any) -> ClusterPlan:
    return replace(CLUSTER, queues=(replace(QUEUE, offers=offers, min_nodes=0, **more),))


BLOCK = replace(SPOT, pool=1, market=Market.CAPACITY_BLOCK, max_price_usd_per_hour=None)
RESERVATION = replace(BLOCK, pool=2, market=Market.RESERVATION)


class BlockPrices(RoundPrices):
    """The same, with a price for blocks."""

    def instance(self, instance_type: str) -> InstanceRates | None:
        found = super().instance(instance_type)
        return replace(found, capacity_block=10.0, capacity_block_source="blocks") if found else None


def test_pool_supplies_at_most_its_count() -> None:
    counts = {("train", 1): 8, ("train", 2): 4}
    cost = forecast_cost(BASE, with_offers(BLOCK, RESERVATION, max_nodes=40), BlockPrices(), counts)
    assert [(row.market, row.nodes, cents(row.usd_per_hour)) for row in cost.queues] == [
        (Market.CAPACITY_BLOCK, 8, (80.0, 80.0)),
        (Market.RESERVATION, 4, (80.0, 80.0)),
    ]
    assert cents(cost.full[0].usd) == (160.0, 160.0)


def test_queue_uses_the_cheapest_market_first() -> None:
    spot = replace(SPOT, pool=3, max_price_usd_per_hour=None)
    counts = {("train", 1): 2, ("train", 2): 3}
    cost = forecast_cost(BASE, with_offers(BLOCK, RESERVATION, spot), BlockPrices(), counts)
    assert cents(cost.full[0].usd) == (8.0, 70.0)  # 4 x 2 in spot; 3 x 20 reserved and 1 x 10 in the block


def test_pools_of_a_market_add_up_and_one_without_a_count_has_all_nodes() -> None:
    second = replace(BLOCK, pool=2)
    nodes = [
        forecast_cost(BASE, with_offers(BLOCK, second), BlockPrices(), counts).queues[0].nodes
        for counts in ({("train", 1): 1, ("train", 2): 2}, {("train", 1): 9}, {("train", 1): 1})
    ]
    assert nodes == [3, 4, 4]


def test_instances_are_counted_by_the_spec() -> None:
    held = {"market": "reservation", "ids": ["cr-0123456789abcdef0"], "zones": ["use1-az1"], "count": 4}
    pools = [{"market": "spot"}, held]
    queue = {"name": "train", "instance_type": "p4d.24xlarge", "nodes": {"max": 4}, "capacity": pools}
    base = parse_base(
        {"network": {"cidr": "10.64.0.0/16", "zones": ["use1-az1"]}},
        name="dev",
        where="base",
        context=ValidationContext(region="us-east-1"),
    )
    context = ValidationContext(region="us-east-1", base=base)
    spec = parse_cluster({"base": "dev", "queues": [queue]}, name="dev", where="cluster", context=context)
    assert pool_counts(spec) == {("train", 2): 4}


def test_each_price_has_its_own_source() -> None:
    cost = forecast_cost(BASE, with_offers(BLOCK, RESERVATION), BlockPrices())
    assert [row.source for row in cost.queues] == ["blocks", "instances"]


def test_a_market_without_a_price_may_be_the_cheapest() -> None:
    cost = forecast_cost(BASE, with_offers(BLOCK, ON_DEMAND), PRICES)
    assert cost.full == (Sum(usd=Usd(0.0, 80.0), missing=("queue train: 4 p4d.24xlarge capacity-block",)),)


DATA = LustrePlan(
    name="data",
    zone_id="use1-az1",
    size_gib=19_200,
    deployment="PERSISTENT_2",
    throughput_mbps_per_tib=250,
    metadata_iops=24_000,
    backup_days=7,
    mount="/data",
    data=(),
    retained=True,
)


def test_sum_with_missing_prices_names_them() -> None:
    cost = forecast_cost(replace(BASE, lustre=(DATA,)), CLUSTER, PRICES)
    lustre = ("Lustre data, PERSISTENT_2 SSD 250 (19,200 GiB)", "Lustre data, metadata (12,000 IOPS)")
    assert cost.idle_base_usd_per_month.missing == cost.retained_usd_per_month.missing == lustre
    assert cost.idle_cluster_usd_per_hour.missing == ("alarm",)
    assert cost.maximum_usd_per_hour.missing == (*lustre, "alarm")


def test_an_ssd_cache_has_its_own_price() -> None:
    slow = replace(DATA, deployment="PERSISTENT_1", disks="HDD", throughput_mbps_per_tib=12, metadata_iops=None)
    prices = catalog_prices("us-east-1")
    found = [
        {item.what: item.usd_per_hour for item in forecast_cost(replace(BASE, lustre=(system,)), CLUSTER, prices).base}
        for system in (slow, replace(slow, drive_cache=True))
    ]
    assert found[0]["Lustre data, PERSISTENT_1 HDD 12"] == Usd.exact(0.025 * 19_200 / HOURS_PER_MONTH)
    assert found[1]["Lustre data, PERSISTENT_1 HDD 12 with cache"] == Usd.exact(0.041 * 19_200 / HOURS_PER_MONTH)


def test_included_metadata_iops_are_free() -> None:
    included = replace(BASE, lustre=(replace(DATA, metadata_iops=12_000),))
    whats = [item.what for item in forecast_cost(included, CLUSTER, PRICES).base]
    assert "Lustre data, metadata" not in whats


def test_backups_are_billed_by_use_at_an_unknown_price() -> None:
    cost = forecast_cost(replace(BASE, lustre=(DATA,)), CLUSTER, PRICES)
    assert "backups of Lustre data: 7 days, of up to 19,200 GiB each" in cost.unknown_by_use


def test_bursting_throughput_has_no_traffic_charge() -> None:
    bursting = replace(BASE, home=HomePlan(token="t", throughput="bursting"))
    assert forecast_cost(bursting, CLUSTER, PRICES).unknown_by_use == ()


def test_type_without_a_price_is_named() -> None:
    strange = replace(CLUSTER, queues=(replace(QUEUE, instance_type="p9.huge"),))
    assert forecast_cost(BASE, strange, PRICES).unknown == (
        "alarm",
        "queue train: 4 p9.huge spot or on-demand",
    )


def test_base_without_endpoints_has_no_charge_for_them() -> None:
    plain = forecast_cost(replace(BASE, interface_endpoints=()), CLUSTER, PRICES)
    assert [item.what for item in plain.base] == ["NAT gateway", "public address of the NAT gateway", "KMS keys"]


def test_a_capacity_block_costs_its_own_price() -> None:
    block = replace(SPOT, market=Market.CAPACITY_BLOCK, max_price_usd_per_hour=None)
    assert cents(offer_usd_per_hour(block, "p5.48xlarge", catalog_prices("us-east-1"))) == (47.76, 47.76)
