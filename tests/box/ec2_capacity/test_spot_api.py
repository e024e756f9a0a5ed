"""The API of the spot market and of instance type offerings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from vpc_fixtures import Clients

from corral.box import control
from corral.box.client import BoxStatus

NOW = datetime.now(UTC)
P5 = {"InstanceTypes": ["p5.48xlarge"]}
THREE = ["p5.48xlarge", "p5en.48xlarge", "p4d.24xlarge"]


def _prices(aws: Clients, region: str = "us-east-1", **query: Any) -> list[dict[str, Any]]:
    return list(aws("ec2", region).describe_spot_price_history(**query)["SpotPriceHistory"])


def _code(aws: Clients, operation: str, **query: Any) -> str:
    with pytest.raises(ClientError) as refused:
        getattr(aws("ec2"), operation)(**query)
    return str(refused.value.response["Error"]["Code"])


def _scores(aws: Clients, **query: Any) -> list[dict[str, Any]]:
    return list(aws("ec2").get_spot_placement_scores(**query)["SpotPlacementScores"])


def test_the_price_of_each_zone_is_within_the_catalogs(aws: Clients) -> None:
    now = datetime.now(UTC)
    result = _prices(aws, **P5, StartTime=now)
    zones = {one["AvailabilityZone"] for one in result}
    within = [17.6289 <= float(one["SpotPrice"]) <= 55.04 for one in result]
    assert (zones, within) == ({f"us-east-1{zone}" for zone in "abcdef"}, [True] * 6)


def test_a_price_has_its_zone_and_product_and_holds_since_its_change(aws: Clients) -> None:
    (result,) = _prices(aws, **P5, AvailabilityZone="us-east-1b", StartTime=NOW, EndTime=NOW)
    price, since = float(result.pop("SpotPrice")), result.pop("Timestamp")
    assert (result, 17.6289 <= price <= 55.04, NOW - timedelta(hours=12) < since <= NOW) == (
        {
            "AvailabilityZone": "us-east-1b",
            "AvailabilityZoneId": "use1-az1",
            "InstanceType": "p5.48xlarge",
            "ProductDescription": "Linux/UNIX",
        },
        True,
        True,
    )


def test_prices_of_a_time_are_those_that_changed_in_it_and_the_one_before(aws: Clients) -> None:
    start = NOW - timedelta(days=1)
    result = _prices(aws, **P5, AvailabilityZoneId="use1-az1", StartTime=start, EndTime=NOW)
    assert [start < one["Timestamp"] <= NOW for one in result] == [True, True, False]


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ([{"Name": "availability-zone", "Values": ["us-east-1b", "us-east-1c"]}], 2),
        ([{"Name": "instance-type", "Values": ["p5.*"]}], 6),
        ([{"Name": "product-description", "Values": ["Windows"]}], 0),
        ([{"Name": "availability-zone-id", "Values": ["use1-az1"]}, {"Name": "spot-price", "Values": ["9*"]}], 0),
    ],
)
def test_prices_are_filtered(aws: Clients, filters: list[dict[str, Any]], count: int) -> None:
    assert len(_prices(aws, **P5, StartTime=datetime.now(UTC), Filters=filters)) == count


def test_windows_has_no_prices(aws: Clients) -> None:
    assert _prices(aws, **P5, ProductDescriptions=["Windows"]) == []


def test_prices_come_in_pages_the_newest_first(aws: Clients) -> None:
    query = {**P5, "StartTime": NOW - timedelta(days=3), "EndTime": NOW}
    pages = aws("ec2").get_paginator("describe_spot_price_history").paginate(**query, PaginationConfig={"PageSize": 20})
    result = [[one["Timestamp"] for one in page["SpotPriceHistory"]] for page in pages]
    everything = [time for page in result for time in page]
    assert ([len(page) for page in result], everything == sorted(everything, reverse=True)) == ([20, 20, 2], True)


def test_a_type_without_a_spot_market_has_no_price(aws: Clients) -> None:
    assert _prices(aws, InstanceTypes=["p6-b300.48xlarge"], StartTime=NOW) == []


@pytest.mark.parametrize(
    "query",
    [
        {"InstanceTypes": ["p5.48xl"]},
        {"StartTime": NOW, "EndTime": NOW - timedelta(days=1)},
    ],
)
def test_an_invalid_query_for_prices_is_refused(aws: Clients, query: dict[str, Any]) -> None:
    assert _code(aws, "describe_spot_price_history", **query) == "InvalidParameterValue"


@pytest.mark.parametrize("token", ["x", "1/yesterday"])
def test_an_invalid_token_is_refused(aws: Clients, token: str) -> None:
    assert _code(aws, "describe_spot_price_history", **P5, NextToken=token) == "InvalidNextToken"


def test_regions_are_scored_the_best_first(aws: Clients) -> None:
    result = _scores(aws, InstanceTypes=THREE, TargetCapacity=4, RegionNames=["us-west-2", "us-east-1", "eu-west-3"])
    assert result == [{"Region": "us-east-1", "Score": 8}, {"Region": "us-west-2", "Score": 7}]


def test_zones_are_scored_by_their_ids(aws: Clients) -> None:
    result = _scores(aws, InstanceTypes=THREE, TargetCapacity=4, RegionNames=["us-west-2"], SingleAvailabilityZone=True)
    assert [(one["AvailabilityZoneId"], one["Score"]) for one in result] == [
        ("usw2-az2", 7),
        ("usw2-az3", 7),
        ("usw2-az4", 5),
        ("usw2-az1", 3),
    ]


def test_ten_regions_are_scored_at_most(aws: Clients) -> None:
    assert len(_scores(aws, InstanceTypes=["m7i.large"], TargetCapacity=1)) == 10


def test_the_score_of_a_single_type_is_low(aws: Clients) -> None:
    result = _scores(aws, InstanceTypes=["m7i.large"], TargetCapacity=1)
    assert {one["Score"] for one in result} == {3}


def test_a_target_in_vcpus_is_converted_to_instances(aws: Clients) -> None:
    query = {"InstanceTypes": THREE, "RegionNames": ["us-west-2"]}
    by_count = _scores(aws, **query, TargetCapacity=64)
    by_vcpus = _scores(aws, **query, TargetCapacity=64 * 192, TargetCapacityUnitType="vcpu")
    assert (by_count, by_vcpus) == ([{"Region": "us-west-2", "Score": 3}], [{"Region": "us-west-2", "Score": 3}])


def test_a_zone_without_capacity_has_the_lowest_score(aws: Clients, box: BoxStatus) -> None:
    control.inject_fault(box.dir, "no-capacity", zone="usw2-az2", market="spot")
    result = _scores(aws, InstanceTypes=THREE, TargetCapacity=4, RegionNames=["us-west-2"], SingleAvailabilityZone=True)
    assert [one["Score"] for one in result if one["AvailabilityZoneId"] == "usw2-az2"] == [1]


def test_a_region_without_capacity_for_any_type_has_the_lowest_score(aws: Clients, box: BoxStatus) -> None:
    control.inject_fault(box.dir, "no-capacity")
    result = _scores(aws, InstanceTypes=THREE, TargetCapacity=4, RegionNames=["us-west-2"])
    assert result == [{"Region": "us-west-2", "Score": 1}]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"TargetCapacity": 1}, "MissingParameter"),
        ({"TargetCapacity": 1, "InstanceTypes": ["p5.48xl"]}, "InvalidParameterValue"),
        ({"TargetCapacity": 2_000_000_001, **P5}, "InvalidParameterValue"),
        ({"TargetCapacity": 1, **P5, "RegionNames": ["us-est-1"]}, "InvalidParameterValue"),
        ({"TargetCapacity": 1, **P5, "RegionNames": ["us-east-1"] * 11}, "InvalidParameterValue"),
        ({"TargetCapacity": 1, **P5, "MaxResults": 1001}, "InvalidParameterValue"),
        ({"TargetCapacity": 1, "InstanceTypes": [f"m{n}" for n in range(1001)]}, "InvalidParameterValue"),
    ],
)
def test_an_invalid_query_for_scores_is_refused(aws: Clients, query: dict[str, Any], code: str) -> None:
    assert _code(aws, "get_spot_placement_scores", **query) == code


@pytest.mark.parametrize(
    ("kind", "locations"),
    [
        ("availability-zone-id", ["usw2-az1", "usw2-az2", "usw2-az3", "usw2-az4"]),
        ("availability-zone", ["us-west-2a", "us-west-2b", "us-west-2c", "us-west-2d"]),
        ("region", ["us-west-2"]),
    ],
)
def test_offers_of_a_type_are_those_of_the_catalog(aws: Clients, kind: str, locations: list[str]) -> None:
    result = aws("ec2", "us-west-2").describe_instance_type_offerings(
        LocationType=kind, Filters=[{"Name": "instance-type", "Values": ["p5.48xlarge"]}]
    )["InstanceTypeOfferings"]
    assert [(one["InstanceType"], one["LocationType"], one["Location"]) for one in result] == [
        ("p5.48xlarge", kind, location) for location in locations
    ]


def test_a_type_can_be_launched_in_the_zone_of_its_offering(aws: Clients) -> None:
    ec2 = aws("ec2")
    query = [{"Name": "instance-type", "Values": ["trn1.32xlarge"]}]
    names = [one["Location"] for one in ec2.describe_instance_type_offerings(
        LocationType="availability-zone", Filters=query)["InstanceTypeOfferings"]]  # fmt: skip
    ids = [one["Location"] for one in ec2.describe_instance_type_offerings(
        LocationType="availability-zone-id", Filters=query)["InstanceTypeOfferings"]]  # fmt: skip
    zones = ec2.describe_availability_zones(ZoneNames=names)["AvailabilityZones"]
    assert sorted(zone["ZoneId"] for zone in zones) == ids == ["use1-az4", "use1-az5", "use1-az6"]


def test_offers_are_filtered_by_patterns_and_come_in_pages(aws: Clients) -> None:
    pages = (
        aws("ec2")
        .get_paginator("describe_instance_type_offerings")
        .paginate(
            LocationType="availability-zone-id",
            Filters=[{"Name": "instance-type", "Values": ["p5*"]}, {"Name": "location", "Values": ["use1-az*"]}],
            PaginationConfig={"PageSize": 5},
        )
    )
    assert [len(page["InstanceTypeOfferings"]) for page in pages] == [5, 5, 4]


def test_an_unknown_location_type_is_refused(aws: Clients) -> None:
    assert _code(aws, "describe_instance_type_offerings", LocationType="planet") == "InvalidParameterValue"
