"""The snapshot of prices: that it is whole, and that its figures, copied by hand, agree with each other."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.catalog.aws.instance_types import instance_types
from corral.catalog.aws.lustre import lustre_choices
from corral.catalog.aws.prices import Trust, capacity_block_price, instance_price, service_price
from corral.catalog.aws.regions import regions
from corral.catalog.aws.zone_offerings import offered_zones
from corral.catalog.loader.data_files import read_csv

NO_ON_DEMAND_PRICE = ["p5e.48xlarge", "trn2.3xlarge", "trn2.48xlarge"]  # the source has their spot prices alone
PROPORTIONAL = ("c7i", "m6i", "m7i", "r7i", "t3")  # a size costs what its vCPUs do, in every region
OF_ONE_RATIO = ("g5", "g6", "g6e", "trn1")  # a region's sizes cost the same multiple of us-east-1's
LUSTRE_IN_US_EAST_1 = {
    "SCRATCH_2": 0.14,
    "PERSISTENT_1 SSD 50": 0.14,
    "PERSISTENT_1 SSD 100": 0.19,
    "PERSISTENT_1 SSD 200": 0.29,
    "PERSISTENT_1 HDD 12": 0.025,
    "PERSISTENT_1 HDD 40": 0.083,
    "PERSISTENT_2 SSD 125": 0.145,
    "PERSISTENT_2 SSD 250": 0.21,
    "PERSISTENT_2 SSD 500": 0.34,
    "PERSISTENT_2 SSD 1000": 0.6,
}
NOT_OF_A_TIER = ("lustre-backup-gib-month", "lustre-metadata-iops-month")


def _offered() -> Iterator[tuple[str, str]]:
    return ((name, region) for name in instance_types() for region in regions() if offered_zones(name, region))


def _on_demand(instance_type: str, region: str) -> float | None:
    price = instance_price(instance_type, region)
    return price.on_demand_usd_per_hour if price else None


def _rounding(figure: str) -> float:
    """Half of its last digit: how far a rounded figure can be from the true one."""
    return 0.5 * 10.0 ** -len(figure.partition(".")[2])


def _karpenter() -> dict[str, float]:
    lines = Path(__file__).with_name("karpenter_prices.csv").read_text().splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return {row["instance_type"]: float(row["usd"]) for row in rows}


def test_every_type_has_a_price_where_it_is_offered() -> None:
    priced = {name for name, region in _offered() if instance_price(name, region)}
    assert sorted(set(instance_types()) - priced) == []


def test_every_type_has_an_on_demand_price_where_it_is_offered() -> None:
    priced = {name for name, region in _offered() if _on_demand(name, region) is not None}
    assert sorted(set(instance_types()) - priced) == NO_ON_DEMAND_PRICE


def test_what_has_no_on_demand_price_has_a_spot_price() -> None:
    spots = {row["instance_type"] for row in read_csv("prices.csv") if row["spot_min"] and row["spot_max"]}
    assert set(NO_ON_DEMAND_PRICE) - spots == set()


def test_nothing_is_priced_where_it_is_not_offered() -> None:
    rows = [(row["instance_type"], row["region"]) for row in read_csv("prices.csv")]
    assert [row for row in rows if not offered_zones(*row)] == []


def test_a_price_row_has_a_price() -> None:
    rows = read_csv("prices.csv")
    assert [row for row in rows if not (row["on_demand"] or row["spot_min"])] == []
    assert [row for row in rows if bool(row["spot_min"]) is not bool(row["spot_max"])] == []


def test_prices_of_us_east_1_are_those_of_awss_price_api() -> None:
    ours = {row["instance_type"]: float(row["on_demand"]) for row in _rows("us-east-1") if row["on_demand"]}
    assert ours == _karpenter()


def _rows(region: str) -> Iterator[dict[str, str]]:
    return (dict(row) for row in read_csv("prices.csv") if row["region"] == region)


@pytest.mark.parametrize("family", PROPORTIONAL)
def test_a_size_costs_what_its_vcpus_do(family: str) -> None:
    wrong = []
    for region in regions():
        cells = {
            row["instance_type"]: row["on_demand"]
            for row in _rows(region)
            if instance_types()[row["instance_type"]].family == family
        }
        if not cells:
            continue
        largest = max(cells, key=lambda name: _size(name))
        for name, cell in cells.items():
            share = _size(name) / _size(largest)
            apart = abs(float(cell) - float(cells[largest]) * share)
            if apart > 1e-9 + _rounding(cell) + _rounding(cells[largest]) * share:
                wrong.append((region, name, cell, float(cells[largest]) * share))
    assert wrong == []


def _size(instance_type: str) -> float:
    """How many xlarge it is. Not the vCPUs: a t3.medium has as many as a t3.large."""
    size = instance_type.partition(".")[2]
    return {"medium": 0.25, "large": 0.5, "xlarge": 1.0}.get(size) or float(size.removesuffix("xlarge"))


@pytest.mark.parametrize("family", OF_ONE_RATIO)
def test_a_regions_sizes_cost_the_same_multiple_of_us_east_1s(family: str) -> None:
    wrong = []
    for region in regions():
        ratios = [
            float(row["on_demand"]) / _karpenter()[row["instance_type"]]
            for row in _rows(region)
            if instance_types()[row["instance_type"]].family == family
        ]
        if ratios and max(ratios) - min(ratios) > 2e-3:
            wrong.append((region, min(ratios), max(ratios)))
    assert wrong == []


def test_spot_costs_no_more_than_on_demand() -> None:
    both = [row for row in read_csv("prices.csv") if row["on_demand"] and row["spot_max"]]
    assert len(both) > 1000
    margins = [float(row["on_demand"]) + _rounding(row["spot_max"]) - float(row["spot_max"]) for row in both]
    assert min(margins) > -1e-9


def test_a_capacity_block_costs_no_more_than_on_demand() -> None:
    dearer = [
        (name, region)
        for name, region in _offered()
        if (block := capacity_block_price(name, region))
        and (usd := _on_demand(name, region)) is not None
        and block.usd_per_hour > usd
    ]
    assert dearer == []


def test_every_type_that_is_sold_in_blocks_has_a_price_for_one() -> None:
    sold = {name for name, machine in instance_types().items() if "capacity-block" in machine.markets}
    assert {name for name, region in _offered() if name in sold and capacity_block_price(name, region)} == sold


def test_no_service_is_listed_twice() -> None:
    rows = [(row["name"], row["region"]) for row in read_csv("services.csv")]
    assert len(rows) == len(set(rows))


def test_a_service_is_of_a_known_region_and_costs_something() -> None:
    rows = read_csv("services.csv")
    assert [row for row in rows if row["region"] not in regions() or not float(row["usd"]) > 0] == []


def test_a_services_unit_is_the_same_in_every_region() -> None:
    units = {(row["name"], row["unit"]) for row in read_csv("services.csv")}
    assert len(units) == len({name for name, _ in units})


def test_only_what_no_price_list_has_is_second_hand() -> None:
    rest = {row["name"] for row in read_csv("services.csv") if row["trust"] != Trust.PRICE_LIST}
    assert rest == {"lustre-backup-gib-month"}


@pytest.mark.parametrize(("deployment", "usd"), LUSTRE_IN_US_EAST_1.items())
def test_every_lustre_deployment_has_a_price(deployment: str, usd: float) -> None:
    (row,) = [row for row in lustre_choices() if row.name == deployment]
    price = service_price(row.price_name, "us-east-1")
    assert price and (price.usd, price.unit) == (usd, "GiB and month")


def test_no_lustre_deployment_is_left_out() -> None:
    assert {row.name for row in lustre_choices()} == set(LUSTRE_IN_US_EAST_1)


def test_lustre_prices_are_of_deployments_with_or_without_a_cache() -> None:
    names = {row["name"] for row in read_csv("services.csv") if row["name"].startswith("lustre-")}
    tiers = {row.price_name for row in lustre_choices()}
    cached = {row.price_name.replace("-gib-", "-cache-gib-") for row in lustre_choices() if row.drive_cache}
    assert names == tiers | cached | set(NOT_OF_A_TIER)


@pytest.mark.parametrize("region", regions())
def test_more_throughput_costs_more_in_every_region(region: str) -> None:
    for tiers in (
        [f"lustre-persistent-1-ssd-{figure}" for figure in (50, 100, 200)],
        [f"lustre-persistent-2-ssd-{figure}" for figure in (125, 250, 500, 1000)],
        ["lustre-persistent-1-hdd-12", "lustre-persistent-1-hdd-12-cache", "lustre-persistent-1-hdd-40"],
        ["lustre-persistent-1-hdd-40", "lustre-persistent-1-hdd-40-cache"],
    ):
        prices = [service_price(f"{tier}-gib-month", region) for tier in tiers]
        usd = [price.usd for price in prices if price]
        assert usd == sorted(set(usd))
