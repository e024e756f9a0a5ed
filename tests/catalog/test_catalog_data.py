"""Regions, offerings, prices, images, and the hints about names."""

from __future__ import annotations

import aws_dumps
import pytest

from corral.catalog.aws.images import find_image_profile, image_profiles
from corral.catalog.aws.instance_types import instance_types
from corral.catalog.aws.prices import Trust, capacity_block_price, instance_price, service_price
from corral.catalog.aws.regions import find_region, regions
from corral.catalog.aws.zone_offerings import has_offerings, offered_zones
from corral.catalog.loader.data_files import read_csv
from corral.catalog.loader.suggestions import UnknownName, did_you_mean, nearest, suggestion

SERVICES = (
    "alarm-month",
    "efs-gib-month",
    "gp3-gib-month",
    "hosted-zone-month",
    "interface-endpoint-hour",
    "kms-key-month",
    "lustre-persistent-2-ssd-125-gib-month",
    "lustre-scratch-2-gib-month",
    "nat-gateway-gb",
    "nat-gateway-hour",
    "public-ipv4-hour",
    "s3-gib-month",
    "secret-month",
)


def test_regions_are_those_whose_offerings_are_known() -> None:
    assert tuple(region for region in regions() if has_offerings(region)) == aws_dumps.offered_regions()


def test_the_regions_of_other_partitions_have_no_offerings() -> None:
    assert [region for region in regions() if not has_offerings(region)] == [
        "cn-north-1",
        "cn-northwest-1",
        "us-gov-east-1",
        "us-gov-west-1",
    ]


@pytest.mark.parametrize("region", aws_dumps.offered_regions())
def test_zones_are_those_in_which_aws_offers_anything(region: str) -> None:
    assert set(find_region(region).zones) == set().union(*aws_dumps.offered_zones(region).values())


@pytest.mark.parametrize("region", regions())
def test_a_regions_zones_are_ordinary_ones(region: str) -> None:
    row = find_region(region)
    assert [zone for zone in row.zones if zone.rpartition("-az")[0] != row.zone_prefix] == []


def test_the_shipped_zones_offer_the_shipped_machines() -> None:
    zones = aws_dumps.offered_zones("us-east-1")
    assert zones["p4d.24xlarge"] & zones["m7i.2xlarge"] >= {"use1-az1", "use1-az2"}


def test_an_unknown_region_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"'us-esat-1' is not in the catalog - did you mean 'us-east-1'\?"):
        find_region("us-esat-1")


def test_offerings_are_those_of_aws() -> None:
    for region in aws_dumps.offered_regions():
        offered = aws_dumps.offered_zones(region)
        ordinary = {
            name: tuple(z for z in find_region(region).zones if z in offered.get(name, ())) for name in instance_types()
        }
        assert {name: offered_zones(name, region) for name in instance_types()} == ordinary, region


def test_a_p5en_is_offered_in_two_zones_of_virginia() -> None:
    assert offered_zones("p5en.48xlarge", "us-east-1") == ("use1-az2", "use1-az6")


def test_an_unknown_type_is_offered_nowhere() -> None:
    assert offered_zones("p9.48xlarge", "us-east-1") == ()


def test_every_type_is_offered_somewhere() -> None:
    assert [name for name in instance_types() if not any(offered_zones(name, region) for region in regions())] == []


def test_types_with_links_between_accelerators_have_an_on_demand_price_but_for_these() -> None:
    linked = [name for name, row in instance_types().items() if row.accelerator and row.accelerator.link]
    prices = {name: [price for region in regions() if (price := instance_price(name, region))] for name in linked}
    unpriced = [name for name in linked if all(price.on_demand_usd_per_hour is None for price in prices[name])]
    assert unpriced == ["p5e.48xlarge", "trn2.48xlarge"]


def test_every_price_names_something() -> None:
    rows = read_csv("prices.csv")
    assert [row for row in rows if not (row["on_demand"] or row["spot_min"])] == []


def test_every_offered_price_is_of_a_region_with_the_type() -> None:
    rows = read_csv("prices.csv")
    assert [row for row in rows if not offered_zones(row["instance_type"], row["region"])] == []


def test_a_capacity_block_of_a_region_of_its_own() -> None:
    price = capacity_block_price("trn2.48xlarge", "us-east-2")
    assert price and (price.usd_per_hour, price.as_of, price.trust) == (35.7608, "2026-02-01", Trust.PRICE_LIST)


def test_a_capacity_block_of_no_region_of_its_own_costs_what_it_does_everywhere() -> None:
    price = capacity_block_price("p5e.48xlarge", "us-east-2")
    assert price and (price.usd_per_hour, price.as_of) == (54.928, "2026-10-07")


def test_a_capacity_block_price_that_is_not_known_is_none() -> None:
    assert (capacity_block_price("trn2.48xlarge", "us-east-1"), capacity_block_price("t3.large", "us-east-1")) == (
        None,
        None,
    )


def test_capacity_block_prices_are_of_types_that_are_sold_so() -> None:
    rows = read_csv("capacity_blocks.csv")
    assert [row for row in rows if "capacity-block" not in instance_types()[row["instance_type"]].markets] == []


def test_every_price_is_of_a_known_type_in_a_known_region() -> None:
    rows = [(row["instance_type"], row["region"]) for row in read_csv("prices.csv")]
    assert [row for row in rows if row[0] not in instance_types() or row[1] not in regions()] == []


def test_no_price_is_listed_twice() -> None:
    rows = [(row["instance_type"], row["region"]) for row in read_csv("prices.csv")]
    assert len(rows) == len(set(rows))


def test_spot_is_a_range_that_ends_at_the_on_demand_price() -> None:
    wrong = []
    for row in read_csv("prices.csv"):
        price = instance_price(row["instance_type"], row["region"])
        assert price is not None
        low, high, top = price.spot_min_usd_per_hour, price.spot_max_usd_per_hour, price.on_demand_usd_per_hour
        if low is not None and high is not None and top is not None and not 0 < low <= high <= top + 1e-3:
            wrong.append(row)
    assert wrong == []


def test_a_price_states_where_it_is_from() -> None:
    price = instance_price("p4d.24xlarge", "us-east-1")
    assert price and (price.on_demand_usd_per_hour, price.as_of, price.source, price.trust) == (
        21.957642,
        "after June 2025",
        "skypilot-catalog v8 aws/vms.csv at 00148f2",
        Trust.SECOND_HAND,
    )


def test_local_zones_do_not_lower_a_spot_price() -> None:
    price = instance_price("p5.48xlarge", "us-east-1")
    assert price and (price.spot_min_usd_per_hour, price.spot_max_usd_per_hour) == (17.6289, 55.04)


def test_a_price_that_is_not_known_is_none() -> None:
    assert (instance_price("p4d.24xlarge", "sa-east-1"), service_price("nat-gateway-hour", "sa-east-1")) == (None, None)


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_a_price_with_source_and_trust(name: str) -> None:
    price = service_price(name, "us-east-1")
    assert price and price.usd > 0 and price.source and price.as_of and price.trust is Trust.PRICE_LIST


def test_the_image_profiles_of_the_box_are_marked() -> None:
    boxed = [name for name, profile in image_profiles().items() if profile.box]
    assert boxed == ["box-debian-12", "box-debian-13", "box-debian-sid"]


def test_an_image_profile_knows_its_slurm() -> None:
    profile = find_image_profile("ubuntu-24.04-dlami")
    assert (profile.system, profile.python, profile.slurm_version, profile.default_user) == (
        "ubuntu 24.04",
        "3.12",
        "23.11",
        "ubuntu",
    )


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("dve", ("dev", "train"), ("dev",)),
        ("p5.48xl", ("p4d.24xlarge", "p5.48xlarge"), ("p5.48xlarge",)),
        ("SCRATCH2", ("SCRATCH_2",), ("SCRATCH_2",)),
        ("", ("dev",), ()),
        ("quantum.9xlarge", ("m6i.xlarge",), ()),
        ("p5.49xlarge", ("p5.4xlarge", "p5.48xlarge"), ("p5.48xlarge", "p5.4xlarge")),
        ("us-esat-1", ("us-west-1", "us-east-1"), ("us-east-1", "us-west-1")),
    ],
)
def test_the_nearest_name_is(name: str, known: tuple[str, ...], found: tuple[str, ...]) -> None:
    assert nearest(name, known) == found


@pytest.mark.parametrize(
    ("name", "known", "question"),
    [
        ("us-esat-1", ("us-east-1", "us-west-1"), "did you mean 'us-east-1'?"),
        ("us-est-1", ("us-east-1", "us-west-1"), "did you mean 'us-east-1' or 'us-west-1'?"),
        ("eu-west-9", ("eu-west-1", "eu-west-2", "eu-west-3"), "did you mean 'eu-west-1', 'eu-west-2' or 'eu-west-3'?"),
        ("quantum", ("us-east-1",), None),
    ],
)
def test_names_that_are_about_as_near_are_all_requested(
    name: str, known: tuple[str, ...], question: str | None
) -> None:
    assert did_you_mean(name, known) == question


def test_a_hint_does_not_list_very_many_names() -> None:
    assert suggestion("x", [f"q{number}" for number in range(41)]) == "it has 41 names, from q0 to q9"


def test_a_hint_without_a_near_name_lists_all() -> None:
    assert suggestion("x", ("elastic", "bursting")) == "expected one of elastic, bursting"
