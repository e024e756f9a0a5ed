"""Prices of now: what of AWS's answers counts, and what falls back on the list behind."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from corral.forecast.cost.cost_range import Usd
from corral.forecast.cost.price_source import InstanceRates, ServiceRate
from corral.preflight.live_prices import Listed, LivePrices, PriceQuery, listed, live_prices

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def product(usd: str, *, usage: str = "BoxUsage:p5.48xlarge", unit: str = "Hrs", **attributes: str) -> str:
    """A product of the price list, in the form of aws_v1."""
    price = {"unit": unit, "beginRange": "0", "endRange": "Inf", "pricePerUnit": {"USD": usd}}
    return json.dumps(
        {
            "product": {"attributes": {"usagetype": usage, **attributes}},
            "terms": {"OnDemand": {"x": {"priceDimensions": {"y": price}}}},
            "publicationDate": "2026-11-20T18:29:00Z",
        }
    )


class Account:
    """What an account answers: products by the value of a filter, and a history of spot prices in three zones."""

    def __init__(self, products: Mapping[str, Sequence[str]], spot: Sequence[tuple[str, str]]) -> None:
        self.products, self.spot = products, spot

    def call(self, service: str, action: str, region: str | None = None, **request: Any) -> Mapping[str, Any]:
        values = [one["Value"] for one in request["Filters"]]
        return {"PriceList": next((self.products[value] for value in values if value in self.products), [])}

    def list_all(self, service: str, action: str, key: str, **request: Any) -> Sequence[Mapping[str, Any]]:
        if key == "AvailabilityZones":
            return [{"ZoneName": f"us-east-1{letter}", "ZoneId": f"use1-az{n}"} for n, letter in enumerate("abc", 1)]
        return [{"AvailabilityZone": zone, "SpotPrice": usd} for zone, usd in self.spot]


class Behind:
    """The fallback list for prices that AWS does not return."""

    def instance(self, instance_type: str) -> InstanceRates | None:
        return InstanceRates(
            on_demand=90.0, spot=Usd(1.0, 2.0), source="behind", capacity_block=40.0, capacity_block_source="block"
        )

    def service(self, service: str) -> ServiceRate | None:
        return ServiceRate(usd=7.0, source="behind")


QUERY = PriceQuery(
    region="us-east-1",
    zones=("use1-az1", "use1-az2"),
    instances=("p5.48xlarge",),
    services=("gp3-gib-month", "kms-key-month"),
    own=(),
    now=NOW,
)
GP3 = product("0.0800000000", usage="EBS:VolumeUsage.gp3", unit="GB-Mo")
HISTORY = (("us-east-1a", "20.5"), ("us-east-1b", "31.0"), ("us-east-1a", "24.0"), ("us-east-1c", "9.0"))


def found(account: Account, query: PriceQuery = QUERY) -> LivePrices:
    return live_prices(account, query, Behind())  # type: ignore[arg-type]  # answers as Answers does


def p5(prices: LivePrices) -> InstanceRates:
    price = prices.instance("p5.48xlarge")
    assert price is not None
    return price


@pytest.fixture
def account() -> Account:
    """An account that returns prices of p5.48xlarge and gp3."""
    return Account({"p5.48xlarge": [product("55.04")], "gp3": [GP3]}, HISTORY)


@pytest.mark.parametrize(
    "usage", ["BoxUsage:p5.48xlarge", "USW2-BoxUsage:p5.48xlarge"], ids=["without a region", "with a region"]
)
def test_a_price_is_that_of_its_usage_type(usage: str) -> None:
    assert listed([product("55.04", usage=usage)], usage="BoxUsage:p5.48xlarge", unit="Hrs") == Listed(
        usd=55.04, published="2026-11-20"
    )


@pytest.mark.parametrize(
    "other",
    [
        product("1", usage="UnusedBox:p5.48xlarge"),
        product("1", usage="BoxUsage:p5.48xlarge", marketoption="CapacityBlock"),
        product("1", unit="Quantity"),
    ],
    ids=["another usage type", "another market", "another unit"],
)
def test_other_products_do_not_count(other: str) -> None:
    price = listed([other, product("55.04")], usage="BoxUsage:p5.48xlarge", unit="Hrs")
    assert price is not None
    assert price.usd == 55.04


def test_two_prices_count_as_none() -> None:
    both = [product("55.04"), product("60")]
    assert listed(both, usage="BoxUsage:p5.48xlarge", unit="Hrs") is None


def test_an_on_demand_price_is_that_of_the_price_list(account: Account) -> None:
    assert p5(found(account)).on_demand == 55.04


def test_spot_is_the_lowest_and_the_highest_of_the_environments_zones(account: Account) -> None:
    # 9.0 was in use1-az3.
    assert p5(found(account)).spot == Usd(20.5, 31.0)


def test_without_zones_all_of_the_region_count(account: Account) -> None:
    assert p5(found(account, replace(QUERY, zones=()))).spot == Usd(9.0, 31.0)


def test_a_source_names_the_api_and_the_date(account: Account) -> None:
    assert p5(found(account)).source == (
        "AWS Price List API, 2026-11-20; spot: DescribeSpotPriceHistory, the lowest and the highest price in"
        " use1-az1, use1-az2 in the 30 days to 2026-11-22"
    )


def test_a_service_price_is_that_of_the_price_list(account: Account) -> None:
    assert found(account).service("gp3-gib-month") == ServiceRate(usd=0.08, source="AWS Price List API, 2026-11-20")


def test_missing_prices_come_from_the_fallback_list_and_are_named() -> None:
    prices = found(Account({}, ()))
    assert (p5(prices), prices.service("gp3-gib-month"), prices.missing) == (
        Behind().instance("p5.48xlarge"),
        ServiceRate(usd=7.0, source="behind"),
        ("p5.48xlarge on demand", "p5.48xlarge on spot", "gp3-gib-month", "kms-key-month"),
    )


def test_capacity_blocks_keep_the_fallback_price(account: Account) -> None:
    price = p5(found(account))
    assert (price.capacity_block, price.capacity_block_source) == (40.0, "block")


def test_a_price_of_the_projects_own_stays(account: Account) -> None:
    assert p5(found(account, replace(QUERY, own=("p5.48xlarge",)))).source == "behind"


def test_missing_prices_are_a_warning(account: Account) -> None:
    (warning,) = found(account).warnings
    assert warning.message == "from the catalog, since AWS did not return them: kms-key-month"
