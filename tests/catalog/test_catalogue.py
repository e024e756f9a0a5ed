"""Regions, prices, images, Lustre sizes, and the hints about names."""

from __future__ import annotations

import aws_dumps
import pytest

from corral.catalog.images import find_image_profile, image_profiles
from corral.catalog.instances import instance_types
from corral.catalog.lustre import find_lustre_deployment
from corral.catalog.names import UnknownName, nearest, suggestion
from corral.catalog.prices import Trust, instance_price, service_price
from corral.catalog.regions import find_region, regions
from corral.catalog.tables import read_csv

SERVICES = (
    "alarm-month",
    "efs-gib-month",
    "gp3-gib-month",
    "hosted-zone-month",
    "interface-endpoint-hour",
    "kms-key-month",
    "lustre-scratch-2-gib-month",
    "nat-gateway-gb",
    "nat-gateway-hour",
    "public-ipv4-hour",
    "s3-gib-month",
    "secret-month",
)


def test_regions_are_those_whose_offerings_are_known() -> None:
    assert tuple(regions()) == aws_dumps.offered_regions()


@pytest.mark.parametrize("region", regions())
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
    with pytest.raises(UnknownName, match=r"'us-esat-1' is not in the catalogue - did you mean 'us-east-1'\?"):
        find_region("us-esat-1")


def test_every_type_has_a_price_in_the_first_region() -> None:
    assert [name for name in instance_types() if instance_price(name, "us-east-1") is None] == []


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


def test_a_price_says_where_it_is_from() -> None:
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
    assert price and price.usd > 0 and price.source and price.as_of and price.trust is Trust.SECOND_HAND


def test_the_only_image_profile_of_the_box_is_marked() -> None:
    assert [name for name, profile in image_profiles().items() if profile.box] == ["box-debian-12"]


def test_an_image_profile_knows_its_slurm() -> None:
    profile = find_image_profile("ubuntu-24.04-dlami")
    assert (profile.system, profile.python, profile.slurm_version, profile.default_user) == (
        "ubuntu 24.04",
        "3.12",
        "23.11",
        "ubuntu",
    )


@pytest.mark.parametrize(
    ("size_gib", "allowed", "near"),
    [
        (0, False, (1200,)),
        (100, False, (1200,)),
        (1200, True, (2400,)),
        (1500, False, (1200, 2400)),
        (2400, True, (1200, 4800)),
        (3600, False, (2400, 4800)),
        (4800, True, (2400, 7200)),
    ],
)
def test_lustre_comes_in_steps(size_gib: int, allowed: bool, near: tuple[int, ...]) -> None:
    deployment = find_lustre_deployment("SCRATCH_2")
    assert (deployment.allows(size_gib), deployment.nearest_sizes(size_gib)) == (allowed, near)


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("dve", ("dev", "train"), ("dev",)),
        ("p5.48xl", ("p4d.24xlarge", "p5.48xlarge"), ("p5.48xlarge",)),
        ("SCRATCH2", ("SCRATCH_2",), ("SCRATCH_2",)),
        ("", ("dev",), ()),
        ("quantum.9xlarge", ("m6i.xlarge",), ()),
    ],
)
def test_the_nearest_name_is(name: str, known: tuple[str, ...], found: tuple[str, ...]) -> None:
    assert nearest(name, known) == found


def test_a_hint_without_a_near_name_lists_all() -> None:
    assert suggestion("x", ("elastic", "bursting")) == "known are elastic, bursting"
