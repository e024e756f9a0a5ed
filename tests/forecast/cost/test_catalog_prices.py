"""The catalog's snapshot as a price list; the figures are those of its data files."""

from corral.forecast.cost.catalog_prices import catalog_prices
from corral.forecast.cost.cost_range import Usd
from corral.forecast.cost.price_source import InstanceRates, Service, ServiceRate
from corral.model.enums import Market


def test_instance_price_has_source_date_and_reliability() -> None:
    assert catalog_prices("us-east-1").instance("p4d.24xlarge") == InstanceRates(
        on_demand=21.957642,
        spot=Usd(2.4655, 8.1915),
        source="skypilot-catalog v8 aws/vms.csv at 00148f2, after June 2025, second-hand;"
        " spot: the cheapest and the most expensive zone at one time",
        capacity_block=13.568,
        capacity_block_source="notes of October 2026 on AWS's Capacity Blocks pricing page, 2026-10-07, second-hand",
    )


def test_unknown_type_has_no_price() -> None:
    assert catalog_prices("us-east-1").instance("p9.huge") is None


def test_every_service_has_a_price_in_us_east_1() -> None:
    prices = catalog_prices("us-east-1")
    assert [service for service in Service if prices.service(service) is None] == []


def test_service_price_of_another_region_is_that_of_us_east_1_and_names_it() -> None:
    assert catalog_prices("eu-west-1").service(Service.KMS_KEY_MONTH) == ServiceRate(
        usd=1.0,
        source="ArdurAI/veer docs/architecture/cost-model, 2026-08-31, price-list;"
        " price of us-east-1, unknown in eu-west-1",
    )


def test_price_of_a_block_keeps_its_own_source_and_date() -> None:
    price = catalog_prices("us-east-1").instance("p5.48xlarge")
    assert price is not None
    assert price.source_of(Market.CAPACITY_BLOCK) == (
        "notes of October 2026 on AWS's Capacity Blocks pricing page, 2026-10-07, second-hand"
    )
    assert price.source_of(Market.ON_DEMAND) == price.source_of(Market.SPOT) == price.source


def test_missing_price_has_no_source() -> None:
    price = catalog_prices("us-east-1").instance("g5.xlarge")
    assert price is not None and price.source_of(Market.CAPACITY_BLOCK) is None
