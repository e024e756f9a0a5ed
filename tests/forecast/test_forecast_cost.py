"""The bill of the worked example, in round prices: every sum can be done in the head."""

from dataclasses import replace

from corral.forecast.bill import CostForecast
from corral.forecast.catalogue import catalogue_prices
from corral.forecast.cost import forecast_cost, offer_usd_per_hour
from corral.forecast.money import Usd
from corral.model.markets import Market
from worked_example import BASE, CLUSTER, QUEUE, RoundPrices

PRICES = RoundPrices()
COST = forecast_cost(BASE, CLUSTER, PRICES)
SPOT, ON_DEMAND = QUEUE.offers


def cents(usd: Usd | None) -> tuple[float, float] | None:
    return None if usd is None else (round(usd.low, 4), round(usd.high, 4))


def hourly(cost: CostForecast) -> dict[str, tuple[float, float] | None]:
    return {item.what: cents(item.usd_per_hour) for item in (*cost.base, *cost.cluster)}


def test_everything_that_stands_still_has_its_hourly_cost() -> None:
    assert hourly(COST) == {
        "NAT gateway": (0.05, 0.05),
        "public address of the NAT gateway": (0.005, 0.005),
        "interface endpoints x zones": (0.04, 0.04),
        "KMS key": (0.01, 0.01),
        "head, m7i.2xlarge": (0.4, 0.4),
        "head's volumes": (0.02, 0.02),
        "Lustre scratch, SCRATCH_2": (0.24, 0.24),
        "private DNS zone": (0.001, 0.001),
        "secret": (0.001, 0.001),
        "alarm": None,
        "queue train, p4d.24xlarge": (2.0, 20.0),
    }


def test_idle_base_is_summed_for_a_month_of_730_hours() -> None:
    assert cents(COST.idle_base_usd_per_month) == (76.65, 76.65)


def test_idle_cluster_counts_head_storage_and_static_nodes() -> None:
    assert cents(COST.idle_cluster_usd_per_hour) == (2.662, 20.662)


def test_maximum_goes_from_all_spot_to_all_on_demand_and_counts_static_nodes_once() -> None:
    assert cents(COST.maximum_usd_per_hour) == (0.105 + 0.662 + 8.0, 0.105 + 0.662 + 80.0)


def test_key_alone_is_kept_at_a_fixed_price() -> None:
    assert cents(COST.kept_usd_per_month) == (7.3, 7.3)


def test_stored_data_is_named_as_kept_and_traffic_is_not() -> None:
    assert [(use.what, use.usd, use.kept) for use in COST.by_use] == [
        ("bucket: objects stored", 0.02, True),
        ("home: files stored", 0.3, True),
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


def test_limit_below_the_cheapest_zone_costs_no_more_than_the_limit() -> None:
    low = replace(SPOT, max_price_usd_per_hour=1.5)
    assert cents(offer_usd_per_hour(low, "p4d.24xlarge", PRICES)) == (1.5, 1.5)


def test_type_without_a_price_is_named_and_not_guessed() -> None:
    strange = replace(CLUSTER, queues=(replace(QUEUE, instance_type="p9.huge"),))
    assert forecast_cost(BASE, strange, PRICES).unknown == (
        "alarm",
        "queue train, p9.huge",
        "p9.huge spot",
        "p9.huge on-demand",
    )


def test_base_without_endpoints_pays_for_none() -> None:
    plain = forecast_cost(replace(BASE, interface_endpoints=()), CLUSTER, PRICES)
    assert [item.what for item in plain.base] == ["NAT gateway", "public address of the NAT gateway", "KMS key"]


def test_a_capacity_block_costs_its_own_price() -> None:
    block = replace(SPOT, market=Market.CAPACITY_BLOCK, max_price_usd_per_hour=None)
    assert cents(offer_usd_per_hour(block, "p5.48xlarge", catalogue_prices("us-east-1"))) == (39.33, 39.33)
