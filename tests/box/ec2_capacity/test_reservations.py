"""Capacity reservations and Capacity Blocks: their capacity, their use by launches, and their end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from vpc_fixtures import Clients, LaunchNetwork, described, launch, node_template

import boxes
from boxes import inventory
from corral.box import client
from corral.box.api_errors import ApiError
from corral.box.client import BoxStatus
from corral.box.daemon import moto_overrides
from corral.box.ec2.actions import BoxEC2
from corral.box.ec2.launch import plan_launch
from corral.box.ec2_capacity.block_offerings import offerings

KIND, ZONE = "p4d.24xlarge", "us-east-1b"
NOON = datetime(2026, 11, 21, 12)  # UTC
BLOCK_MARKET = {"MarketType": "capacity-block"}
UNKNOWN = "cr-00000000000000000"


def _reserve(aws: Clients, count: int = 2, **arguments: Any) -> str:
    wanted = {"InstanceType": KIND, "InstancePlatform": "Linux/UNIX", "AvailabilityZone": ZONE, **arguments}
    made = aws("ec2").create_capacity_reservation(InstanceCount=count, **wanted)
    return str(made["CapacityReservation"]["CapacityReservationId"])


def _shown(aws: Clients, reservation: str) -> dict[str, Any]:
    found = aws("ec2").describe_capacity_reservations(CapacityReservationIds=[reservation])
    return dict(found["CapacityReservations"][0])


def _free(aws: Clients, reservation: str) -> int:
    return int(_shown(aws, reservation)["AvailableInstanceCount"])


def _template(launch_network: LaunchNetwork, target: str | None = None, **changes: Any) -> dict[str, Any]:
    """The data of a template for on-demand nodes outside of any group, that may target a reservation."""
    left_out = ("InstanceMarketOptions", "Placement", "CapacityReservationSpecification")
    data = {name: value for name, value in node_template(launch_network).items() if name not in left_out}
    if target:
        data["CapacityReservationSpecification"] = {"CapacityReservationTarget": {"CapacityReservationId": target}}
    return {**data, **changes}


def _group_arn(aws: Clients) -> str:
    return str(aws("ec2").describe_placement_groups()["PlacementGroups"][0]["GroupArn"])


def _refusal(act: Callable[..., Any], *args: Any, **named: Any) -> str:
    with pytest.raises(ClientError) as refused:
        act(*args, **named)
    return str(refused.value.response["Error"]["Code"])


def _block(aws: Clients, count: int = 2, zone: str = ZONE, **arguments: Any) -> str:
    """The reservation of a block that starts at once, or on the requested day."""
    ec2 = aws("ec2")
    offers = ec2.describe_capacity_block_offerings(
        InstanceType=KIND, InstanceCount=count, CapacityDurationHours=24, **arguments
    )["CapacityBlockOfferings"]
    chosen = next(offer["CapacityBlockOfferingId"] for offer in offers if offer["AvailabilityZone"] == zone)
    bought = ec2.purchase_capacity_block(CapacityBlockOfferingId=chosen, InstancePlatform="Linux/UNIX")
    return str(bought["CapacityReservation"]["CapacityReservationId"])


def test_a_reservation_shows_what_was_requested(aws: Clients, launch_network: LaunchNetwork) -> None:
    tags = [{"Key": "corral:base", "Value": "dev"}]
    made = _reserve(
        aws,
        InstanceMatchCriteria="targeted",
        PlacementGroupArn=_group_arn(aws),
        EndDateType="limited",
        EndDate=datetime(2100, 5, 31, 13, 30, tzinfo=UTC),
        TagSpecifications=[{"ResourceType": "capacity-reservation", "Tags": tags}],
    )
    shown = _shown(aws, made)
    times = {name: shown.pop(name) for name in ("StartDate", "CreateDate")}
    arn = "arn:aws:ec2:us-east-1:123456789012"
    assert (len(times), made[:3], len(made), shown) == (
        2,
        "cr-",
        20,
        {
            "CapacityReservationId": made,
            "OwnerId": "123456789012",
            "CapacityReservationArn": f"{arn}:capacity-reservation/{made}",
            "AvailabilityZone": "us-east-1b",
            "AvailabilityZoneId": "use1-az1",
            "InstanceType": "p4d.24xlarge",
            "InstancePlatform": "Linux/UNIX",
            "Tenancy": "default",
            "TotalInstanceCount": 2,
            "AvailableInstanceCount": 2,
            "EbsOptimized": False,
            "EphemeralStorage": False,
            "State": "active",
            "EndDate": datetime(2100, 5, 31, 13, 30, tzinfo=UTC),
            "EndDateType": "limited",
            "InstanceMatchCriteria": "targeted",
            "Tags": tags,
            "PlacementGroupArn": f"{arn}:placement-group/train-az1",
            "CapacityAllocations": [],
            "ReservationType": "default",
        },
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"InstanceType": "p4d.48xlarge"}, "InvalidParameterValue"),
        ({"InstancePlatform": "Ubuntu"}, "InvalidParameterValue"),
        ({"AvailabilityZone": "us-east-1z"}, "InvalidAvailabilityZone"),
        ({"AvailabilityZone": "us-east-1e"}, "Unsupported"),  # no p4d there
        ({"AvailabilityZoneId": "use1-az1"}, "InvalidParameterCombination"),  # beside the name
        ({"InstanceCount": 0}, "InvalidParameterValue"),
        ({"InstanceCount": 1001}, "InvalidParameterValue"),
        ({"EndDateType": "limited"}, "InvalidParameterCombination"),
        ({"EndDate": datetime(2100, 1, 1)}, "InvalidParameterCombination"),  # the type is unlimited
        ({"EndDateType": "limited", "EndDate": datetime(2020, 1, 1)}, "InvalidParameterValue"),
        (
            {"PlacementGroupArn": "arn:aws:ec2:us-east-1:123456789012:placement-group/none"},
            "InvalidPlacementGroup.Unknown",
        ),
        ({"DryRun": True}, "DryRunOperation"),
    ],
)
def test_a_reservation_is_refused(
    aws: Clients, launch_network: LaunchNetwork, arguments: dict[str, Any], code: str
) -> None:
    wanted = {"InstanceType": KIND, "InstancePlatform": "Linux/UNIX", "AvailabilityZone": ZONE, "InstanceCount": 1}
    assert _refusal(aws("ec2").create_capacity_reservation, **{**wanted, **arguments}) == code


def test_a_spread_group_has_no_reservations(aws: Clients, launch_network: LaunchNetwork) -> None:
    group = aws("ec2").create_placement_group(GroupName="apart", Strategy="spread")["PlacementGroup"]["GroupArn"]
    assert _refusal(_reserve, aws, PlacementGroupArn=group) == "InvalidParameterCombination"


def test_the_same_client_token_gives_the_same_reservation(aws: Clients) -> None:
    first, second = (_reserve(aws, ClientToken="token") for _ in range(2))
    assert (first == second, _refusal(_reserve, aws, 3, ClientToken="token")) == (True, "IdempotentParameterMismatch")


def test_an_unknown_or_malformed_reservation_is_refused(aws: Clients) -> None:
    query = [UNKNOWN, "cr-1"]
    codes = [_refusal(aws("ec2").describe_capacity_reservations, CapacityReservationIds=[name]) for name in query]
    assert codes == ["InvalidCapacityReservationId.NotFound", "InvalidCapacityReservationId.Malformed"]


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("instance-type", KIND, 2),
        ("availability-zone", "us-east-1c", 1),
        ("instance-match-criteria", "targeted", 1),
        ("state", "active", 1),
        ("end-date-type", "limited", 0),
        ("tenancy", "default", 2),
        ("owner-id", "123456789012", 2),
    ],
)
def test_reservations_are_found_by(aws: Clients, name: str, value: str, found: int) -> None:
    _reserve(aws, InstanceMatchCriteria="targeted")
    aws("ec2").cancel_capacity_reservation(CapacityReservationId=_reserve(aws, AvailabilityZone="us-east-1c"))
    query = [{"Name": name, "Values": [value]}]
    assert len(aws("ec2").describe_capacity_reservations(Filters=query)["CapacityReservations"]) == found


def test_pages_of_reservations_have_the_requested_size(aws: Clients) -> None:
    for _ in range(3):
        _reserve(aws)
    pages = aws("ec2").get_paginator("describe_capacity_reservations").paginate(PaginationConfig={"PageSize": 2})
    assert [len(page["CapacityReservations"]) for page in pages] == [2, 1]


def test_the_free_capacity_of_a_reservation_follows_launches_and_ends(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    held = _reserve(aws, 3, InstanceMatchCriteria="targeted")
    free = [_free(aws, held)]
    first, _ = launch(aws, _template(launch_network, held), 2)
    free.append(_free(aws, held))
    aws("ec2").terminate_instances(InstanceIds=[first["InstanceId"]])
    assert [*free, _free(aws, held)] == [3, 1, 2]


def test_an_instance_names_the_reservation_that_it_targets(aws: Clients, launch_network: LaunchNetwork) -> None:
    held = _reserve(aws, InstanceMatchCriteria="targeted")
    (instance,) = launch(aws, _template(launch_network, held))
    shown = described(aws, instance["InstanceId"])
    assert (
        shown["CapacityReservationId"],
        shown["CapacityReservationSpecification"],
        shown.get("InstanceLifecycle"),
    ) == (held, {"CapacityReservationTarget": {"CapacityReservationId": held}}, None)


def test_a_target_in_the_request_counts_like_one_in_the_template(aws: Clients, launch_network: LaunchNetwork) -> None:
    held = _reserve(aws, InstanceMatchCriteria="targeted")
    target = {"CapacityReservationTarget": {"CapacityReservationId": held}}
    (instance,) = launch(aws, _template(launch_network), CapacityReservationSpecification=target)
    assert instance["CapacityReservationId"] == held


def test_instances_are_found_by_their_reservation(aws: Clients, launch_network: LaunchNetwork) -> None:
    held = _reserve(aws, InstanceMatchCriteria="targeted")
    launch(aws, _template(launch_network, held), 2)
    launch(aws, _template(launch_network))
    query = [{"Name": "capacity-reservation-id", "Values": [held]}]
    assert [len(r["Instances"]) for r in aws("ec2").describe_instances(Filters=query)["Reservations"]] == [2]


@pytest.mark.parametrize(
    ("arguments", "used"),
    [
        ({}, 1),
        ({"InstanceMatchCriteria": "targeted"}, 0),
        ({"AvailabilityZone": "us-east-1c"}, 0),
        ({"InstanceType": "p5.48xlarge"}, 0),
        ({"InstancePlatform": "Red Hat Enterprise Linux"}, 0),
        ({"Tenancy": "dedicated"}, 0),
        ({"PlacementGroupArn": "arn:aws:ec2:us-east-1:123456789012:placement-group/train-az1"}, 0),
    ],
)
def test_a_launch_without_a_target_uses_a_matching_open_reservation(
    aws: Clients, launch_network: LaunchNetwork, arguments: dict[str, Any], used: int
) -> None:
    held = _reserve(aws, **arguments)
    launch(aws, _template(launch_network))
    assert 2 - _free(aws, held) == used


@pytest.mark.parametrize("changes", [{"CapacityReservationPreference": "none"}, {"MarketType": "spot"}])
def test_a_launch_that_avoids_reservations_or_is_spot_uses_none(
    aws: Clients, launch_network: LaunchNetwork, changes: dict[str, str]
) -> None:
    held = _reserve(aws)
    kind = "InstanceMarketOptions" if "MarketType" in changes else "CapacityReservationSpecification"
    launch(aws, _template(launch_network, **{kind: changes}))
    assert _free(aws, held) == 2


def test_a_launch_that_does_not_fit_into_an_open_reservation_runs_outside(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    held = _reserve(aws, 2)
    started = launch(aws, _template(launch_network), 3)
    assert (len(started), _free(aws, held)) == (3, 2)


def test_a_launch_into_reservations_only_fails_without_one(aws: Clients, launch_network: LaunchNetwork) -> None:
    only = {"CapacityReservationSpecification": {"CapacityReservationPreference": "capacity-reservations-only"}}
    refused = _refusal(launch, aws, _template(launch_network, **only))
    held = _reserve(aws)
    (instance,) = launch(aws, _template(launch_network, **only))
    assert (refused, instance["CapacityReservationId"] == held) == ("ReservationCapacityExceeded", True)


@pytest.mark.parametrize(
    "arguments",
    [
        {"InstanceType": "p5.48xlarge"},
        {"AvailabilityZone": "us-east-1c"},
        {"InstancePlatform": "Red Hat Enterprise Linux"},
        {"Tenancy": "dedicated"},
        {"PlacementGroupArn": "arn:aws:ec2:us-east-1:123456789012:placement-group/train-az1"},  # used without it
    ],
)
def test_a_target_that_does_not_match_has_no_capacity(
    aws: Clients, launch_network: LaunchNetwork, arguments: dict[str, str]
) -> None:
    held = _reserve(aws, InstanceMatchCriteria="targeted", **arguments)
    assert _refusal(launch, aws, _template(launch_network, held)) == "ReservationCapacityExceeded"


@pytest.mark.parametrize(
    ("target", "changes", "code"),
    [
        (UNKNOWN, {}, "InvalidCapacityReservationId.NotFound"),
        ("cr-1", {}, "InvalidCapacityReservationId.Malformed"),
        (UNKNOWN, {"InstanceMarketOptions": {"MarketType": "spot"}}, "InvalidParameterCombination"),
        (None, {"InstanceMarketOptions": BLOCK_MARKET}, "InvalidParameterCombination"),  # a block without a target
        (
            None,
            {
                "InstanceMarketOptions": BLOCK_MARKET,
                "CapacityReservationSpecification": {"CapacityReservationPreference": "open"},
            },
            "InvalidParameterCombination",
        ),
    ],
)
def test_a_target_is_refused(
    aws: Clients, launch_network: LaunchNetwork, target: str | None, changes: dict[str, Any], code: str
) -> None:
    assert _refusal(launch, aws, _template(launch_network, target, **changes)) == code


def test_a_preference_with_a_target_is_refused_with_the_message_of_aws(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    both = {
        "CapacityReservationPreference": "open",
        "CapacityReservationTarget": {"CapacityReservationId": _reserve(aws)},
    }
    with pytest.raises(ClientError) as refused:
        launch(aws, _template(launch_network, CapacityReservationSpecification=both))
    assert refused.value.response["Error"] == {
        "Code": "InvalidParameterCombination",
        "Message": "The request can include either a CapacityReservationId or a CapacityReservationPreference but not"
        " both.",
    }


def test_a_full_reservation_is_refused_with_the_message_of_aws(aws: Clients, launch_network: LaunchNetwork) -> None:
    held = _reserve(aws, 1, InstanceMatchCriteria="targeted")
    with pytest.raises(ClientError) as refused:
        launch(aws, _template(launch_network, held), 2)
    left = aws("ec2").describe_instances()["Reservations"]
    assert (refused.value.response["Error"], left, _free(aws, held)) == (
        {
            "Code": "ReservationCapacityExceeded",
            "Message": "The requested reservation does not have sufficient compatible and available capacity for this"
            " request.",
        },
        [],
        1,
    )


def test_as_many_instances_start_as_the_reservation_has_capacity(aws: Clients, launch_network: LaunchNetwork) -> None:
    held = _reserve(aws, 2, InstanceMatchCriteria="targeted")
    target = {"CapacityReservationTarget": {"CapacityReservationId": held}}
    started = aws("ec2").run_instances(
        ImageId=launch_network.image,
        InstanceType=KIND,
        SubnetId=launch_network.subnet,
        MinCount=1,
        MaxCount=5,
        CapacityReservationSpecification=target,
    )
    assert len(started["Instances"]) == 2


def test_a_group_member_runs_in_a_reservation_of_its_group(aws: Clients, launch_network: LaunchNetwork) -> None:
    held = _reserve(aws, PlacementGroupArn=_group_arn(aws))
    placed = {"Placement": {"GroupName": launch_network.placement}}
    launch(aws, _template(launch_network, **placed))  # by itself, as it is open
    launch(aws, _template(launch_network, held, **placed))
    assert _free(aws, held) == 0


def test_a_group_member_does_not_run_in_a_reservation_without_the_group(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    held = _reserve(aws)
    placed = {"Placement": {"GroupName": launch_network.placement}}
    launch(aws, _template(launch_network, **placed))
    free = _free(aws, held)
    assert (free, _refusal(launch, aws, _template(launch_network, held, **placed))) == (
        2,
        "InsufficientInstanceCapacity",
    )


def test_a_group_with_a_reservation_stays_in_its_zone_and_is_not_deleted(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    ec2 = aws("ec2")
    held = _reserve(aws, PlacementGroupArn=_group_arn(aws))
    refused = [
        _refusal(_reserve, aws, PlacementGroupArn=_group_arn(aws), AvailabilityZone="us-east-1c"),
        _refusal(ec2.delete_placement_group, GroupName=launch_network.placement),
    ]
    ec2.cancel_capacity_reservation(CapacityReservationId=held)
    ec2.delete_placement_group(GroupName=launch_network.placement)
    assert (refused, ec2.describe_placement_groups()["PlacementGroups"]) == (
        ["InvalidPlacementGroup.InUse", "InvalidPlacementGroup.InUse"],
        [],
    )


def test_instances_of_a_cancelled_reservation_keep_running(aws: Clients, launch_network: LaunchNetwork) -> None:
    held, ec2 = _reserve(aws), aws("ec2")
    (instance,) = launch(aws, _template(launch_network, held))
    ec2.cancel_capacity_reservation(CapacityReservationId=held)
    shown = _shown(aws, held)
    again = [
        _refusal(launch, aws, _template(launch_network, held)),
        _refusal(ec2.cancel_capacity_reservation, CapacityReservationId=held),
    ]
    assert (
        described(aws, instance["InstanceId"])["State"]["Name"],
        shown["State"],
        shown["AvailableInstanceCount"],
        again,
    ) == ("running", "cancelled", 0, ["ReservationCapacityExceeded", "InvalidState"])


def test_a_reservation_grows_but_does_not_shrink_below_its_instances(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    held, ec2 = _reserve(aws, 2), aws("ec2")
    launch(aws, _template(launch_network), 2)
    ec2.modify_capacity_reservation(CapacityReservationId=held, InstanceCount=5)
    refused = _refusal(ec2.modify_capacity_reservation, CapacityReservationId=held, InstanceCount=1)
    assert (_free(aws, held), refused) == (3, "InvalidParameterValue")


def test_a_reservation_changes_its_eligibility_only_while_idle(aws: Clients, launch_network: LaunchNetwork) -> None:
    held, ec2 = _reserve(aws), aws("ec2")
    ec2.modify_capacity_reservation(
        CapacityReservationId=held,
        EndDateType="limited",
        EndDate=datetime(2100, 1, 1),
        InstanceMatchCriteria="targeted",
    )
    ends = [_shown(aws, held)["EndDateType"]]
    ec2.modify_capacity_reservation(CapacityReservationId=held, EndDateType="unlimited")
    launch(aws, _template(launch_network, held))
    refused = _refusal(ec2.modify_capacity_reservation, CapacityReservationId=held, InstanceMatchCriteria="open")
    shown = _shown(aws, held)
    assert ([*ends, shown["EndDateType"]], shown["InstanceMatchCriteria"], refused) == (
        ["limited", "unlimited"],
        "targeted",
        "InvalidState",
    )


def test_an_open_reservation_adopts_running_instances(aws: Clients, launch_network: LaunchNetwork) -> None:
    launch(aws, _template(launch_network), 3)
    made = _reserve(aws, 2)
    opened = _reserve(aws, 5, InstanceMatchCriteria="targeted")
    aws("ec2").modify_capacity_reservation(CapacityReservationId=opened, InstanceMatchCriteria="open")
    assert (_free(aws, made), _free(aws, opened)) == (0, 4)


def test_a_stopped_instance_returns_its_capacity_and_needs_some_to_start(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    held, ec2 = _reserve(aws, 1, InstanceMatchCriteria="targeted"), aws("ec2")
    (first,) = launch(aws, _template(launch_network, held))
    ec2.stop_instances(InstanceIds=[first["InstanceId"]])
    (second,) = launch(aws, _template(launch_network, held))
    refused = _refusal(ec2.start_instances, InstanceIds=[first["InstanceId"]])
    ec2.terminate_instances(InstanceIds=[second["InstanceId"]])
    ec2.start_instances(InstanceIds=[first["InstanceId"]])
    assert (refused, _free(aws, held)) == ("ReservationCapacityExceeded", 0)


def test_blocks_on_offer_end_at_half_past_eleven() -> None:
    now, zones = datetime(2026, 11, 21, 13, 24, 38), ["us-east-1a", "us-east-1b"]
    found = list(offerings(KIND, zones, 4, 48, now, now))
    assert [(offer.zone, offer.start, offer.end) for offer in found[:4]] == [
        ("us-east-1a", datetime(2026, 11, 21, 13, 24), datetime(2026, 11, 23, 11, 30)),
        ("us-east-1b", datetime(2026, 11, 21, 13, 24), datetime(2026, 11, 23, 11, 30)),
        ("us-east-1a", datetime(2026, 11, 22, 11, 30), datetime(2026, 11, 24, 11, 30)),
        ("us-east-1b", datetime(2026, 11, 22, 11, 30), datetime(2026, 11, 24, 11, 30)),
    ]


def test_blocks_on_offer_start_within_eight_weeks() -> None:
    found = list(offerings(KIND, ["us-east-1a"], 4, 24, NOON, NOON))
    assert (len(found), found[-1].start) == (57, datetime(2027, 1, 16, 11, 30))


def test_an_offering_is_the_same_at_every_query(aws: Clients) -> None:
    query = {"InstanceType": KIND, "InstanceCount": 4, "CapacityDurationHours": 336}
    start = datetime.now(UTC) + timedelta(days=3)
    first, second = (
        aws("ec2").describe_capacity_block_offerings(**query, StartDateRange=start)["CapacityBlockOfferings"]
        for _ in range(2)
    )
    assert (first == second, len(first), {offer["CapacityBlockDurationHours"] for offer in first}) == (True, 6, {336})


def test_no_offering_ends_after_the_requested_range(aws: Clients) -> None:
    query = {"InstanceType": KIND, "InstanceCount": 1, "CapacityDurationHours": 24 * 7}
    latest = datetime.now(UTC) + timedelta(days=3)
    assert aws("ec2").describe_capacity_block_offerings(**query, EndDateRange=latest)["CapacityBlockOfferings"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"CapacityDurationHours": 12},
        {"CapacityDurationHours": 24 * 15},  # whole weeks from here on
        {"CapacityDurationHours": 24 * 189},
        {"InstanceCount": 65},
        {"InstanceType": "m7i.large"},  # not sold as blocks
    ],
)
def test_an_invalid_search_for_blocks_is_refused(aws: Clients, arguments: dict[str, Any]) -> None:
    query = {"InstanceType": KIND, "InstanceCount": 1, "CapacityDurationHours": 24, **arguments}
    assert _refusal(aws("ec2").describe_capacity_block_offerings, **query) == "InvalidParameterValue"


def test_a_purchased_block_is_paid_active_and_targeted(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2, tags = aws("ec2"), [{"Key": "corral:base", "Value": "dev"}]
    offer = ec2.describe_capacity_block_offerings(InstanceType=KIND, InstanceCount=2, CapacityDurationHours=24)
    chosen = offer["CapacityBlockOfferings"][1]
    bought = ec2.purchase_capacity_block(
        CapacityBlockOfferingId=chosen["CapacityBlockOfferingId"],
        InstancePlatform="Linux/UNIX",
        TagSpecifications=[{"ResourceType": "capacity-reservation", "Tags": tags}],
    )
    shown = _shown(aws, bought["CapacityReservation"]["CapacityReservationId"])
    names = ("State", "ReservationType", "InstanceMatchCriteria", "AvailabilityZone", "AvailableInstanceCount")
    assert (bought["CapacityReservation"]["State"], [shown[name] for name in names], shown["EndDate"]) == (
        "payment-pending",
        ["active", "capacity-block", "targeted", "us-east-1b", 2],
        chosen["EndDate"],
    )


def test_a_block_has_no_capacity_before_its_start_but_its_size_in_a_tag(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    held = _block(aws, 4, StartDateRange=datetime.now(UTC) + timedelta(days=2))
    shown = _shown(aws, held)
    tags = {tag["Key"]: tag["Value"] for tag in shown["Tags"]}
    counts = (shown["TotalInstanceCount"], shown["AvailableInstanceCount"])
    refused = _refusal(launch, aws, _template(launch_network, held, InstanceMarketOptions=BLOCK_MARKET))
    assert (shown["State"], counts, tags["aws:ec2capacityreservation:incrementalRequestedQuantity"], refused) == (
        "scheduled",
        (0, 0),
        "4",
        "InvalidCapacityReservationState.PendingActivation",
    )


def test_an_instance_shows_its_block(aws: Clients, launch_network: LaunchNetwork) -> None:
    held = _block(aws)
    (instance,) = launch(aws, _template(launch_network, held, InstanceMarketOptions=BLOCK_MARKET))
    shown = described(aws, instance["InstanceId"])
    (block,) = aws("ec2").describe_capacity_blocks()["CapacityBlocks"]
    assert (
        shown["InstanceLifecycle"],
        shown["CapacityReservationId"],
        shown["CapacityBlockId"],
        block["CapacityReservationIds"],
        _free(aws, held),
    ) == ("capacity-block", held, block["CapacityBlockId"], [held], 1)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, "InvalidParameterValue"),  # no market type
        ({"InstanceMarketOptions": {"MarketType": "spot"}}, "InvalidParameterCombination"),
        (
            {"InstanceMarketOptions": BLOCK_MARKET, "Placement": {"GroupName": "train-az1"}},
            "InvalidParameterCombination",
        ),
        ({"InstanceMarketOptions": BLOCK_MARKET, "InstanceType": "p5.48xlarge"}, "ReservationCapacityExceeded"),
    ],
)
def test_a_launch_into_a_block_is_refused(
    aws: Clients, launch_network: LaunchNetwork, changes: dict[str, Any], code: str
) -> None:
    assert _refusal(launch, aws, _template(launch_network, _block(aws), **changes)) == code


def test_the_market_of_a_block_is_not_that_of_a_reservation(aws: Clients, launch_network: LaunchNetwork) -> None:
    held = _reserve(aws, InstanceMatchCriteria="targeted")
    with pytest.raises(ClientError) as refused:
        launch(aws, _template(launch_network, held, InstanceMarketOptions=BLOCK_MARKET))
    assert refused.value.response["Error"] == {
        "Code": "InvalidParameterValue",
        "Message": "The market type (purchasing) option is not valid. Choose a different market type and try again",
    }


def test_a_block_of_another_zone_has_no_capacity(aws: Clients, launch_network: LaunchNetwork) -> None:
    held = _block(aws, zone="us-east-1c")
    refused = _refusal(launch, aws, _template(launch_network, held, InstanceMarketOptions=BLOCK_MARKET))
    assert refused == "ReservationCapacityExceeded"


def test_a_block_is_neither_changed_nor_cancelled(aws: Clients) -> None:
    held, ec2 = _block(aws), aws("ec2")
    codes = [
        _refusal(ec2.modify_capacity_reservation, CapacityReservationId=held, InstanceCount=3),
        _refusal(ec2.cancel_capacity_reservation, CapacityReservationId=held),
    ]
    assert codes == ["UnsupportedOperation", "UnsupportedOperation"]


def test_an_offering_is_sold_once(aws: Clients) -> None:
    ec2 = aws("ec2")
    query = {"InstanceType": KIND, "InstanceCount": 2, "CapacityDurationHours": 24}
    offer = ec2.describe_capacity_block_offerings(**query)["CapacityBlockOfferings"][0]["CapacityBlockOfferingId"]
    ec2.purchase_capacity_block(CapacityBlockOfferingId=offer, InstancePlatform="Linux/UNIX")
    wanted = [offer, "cb-00000000000000000", "offer"]
    codes = [
        _refusal(ec2.purchase_capacity_block, CapacityBlockOfferingId=name, InstancePlatform="Linux/UNIX")
        for name in wanted
    ]
    assert codes == [
        "InvalidCapacityBlockOfferingIdExpired",
        "InvalidCapacityBlockOfferingIdNotFound",
        "InvalidCapacityBlockOfferingIdMalformed",
    ]


def test_two_equal_blocks_can_be_purchased(aws: Clients) -> None:
    states = [_shown(aws, _block(aws))["State"] for _ in range(2)]
    assert states == ["active", "active"]


def _backend_with_block(now: datetime) -> tuple[BoxEC2, dict[str, Any]]:
    """An account with a block of two that begins now and ends at 11:30 a day later, and a request for both."""
    moto_overrides.install()
    backend = BoxEC2("us-east-1", "123456789012")
    offer, *_ = backend.find_offerings(KIND, 2, 24, now, now, datetime.max)
    held = backend.buy_block(offer.id, "Linux/UNIX", {}, now).reservation
    request = {
        "ImageId": next(iter(backend.amis)),
        "InstanceType": KIND,
        "Placement": {"AvailabilityZone": held.zone},
        "MinCount": 2,
        "MaxCount": 2,
        "InstanceMarketOptions": BLOCK_MARKET,
        "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": held.id}},
    }
    return backend, request


def test_instances_of_a_block_end_half_an_hour_before_it() -> None:
    backend, request = _backend_with_block(NOON)
    backend.launch(plan_launch(backend, request, NOON))
    states = []
    for minutes in (59, 60):  # 10:59 and 11:00 of the next day
        backend.end_blocks(datetime(2026, 11, 22, 10) + timedelta(minutes=minutes))
        states.append([instance.state for instance in backend.all_instances()])
    assert states == [["running", "running"], ["terminated", "terminated"]]


def test_an_instance_that_ends_with_its_block_was_not_ended_by_its_user() -> None:
    backend, request = _backend_with_block(NOON)
    backend.launch(plan_launch(backend, request, NOON))
    backend.end_blocks(datetime(2026, 11, 22, 11))
    ended = backend.all_instances()[0]
    assert (ended.state_reason.code, ended.state_transition_reason) == ("", "")


def test_a_block_in_its_last_half_hour_accepts_no_instances() -> None:
    backend, request = _backend_with_block(NOON)
    with pytest.raises(ApiError) as refused:
        plan_launch(backend, request, datetime(2026, 11, 22, 11))
    assert refused.value.code == "ReservationCapacityExceeded"


@pytest.mark.parametrize(
    ("hour", "minute", "state"), [(11, 29, "active"), (11, 30, "expired"), (11, 0, "active"), (0, 0, "active")]
)
def test_a_block_expires_at_its_end(hour: int, minute: int, state: str) -> None:
    backend, _ = _backend_with_block(NOON)
    (block,) = backend.capacity_blocks.values()
    assert block.reservation.state_at(datetime(2026, 11, 22, hour, minute)) == state


def test_a_reservation_with_an_end_expires_then() -> None:
    moto_overrides.install()
    backend = BoxEC2("us-east-1", "123456789012")
    held = backend.reserve_capacity(
        {},
        instance_type=KIND,
        platform="Linux/UNIX",
        zone=ZONE,
        count=3,
        created=NOON,
        start=NOON,
        end=NOON + timedelta(hours=1),
    )
    moments = [NOON + timedelta(minutes=minutes) for minutes in (59, 60)]
    assert [(held.state_at(now), held.free_at(now, 1)) for now in moments] == [("active", 2), ("expired", 0)]


def test_the_tagging_api_shows_reservations_until_they_are_over(aws: Clients) -> None:
    tags = [{"ResourceType": "capacity-reservation", "Tags": [{"Key": "corral:base", "Value": "dev"}]}]
    held = _reserve(aws, TagSpecifications=tags)
    seen = []
    for _ in range(2):
        found = aws("resourcegroupstaggingapi").get_resources()["ResourceTagMappingList"]
        seen.append([entry["ResourceARN"].endswith(f":capacity-reservation/{held}") for entry in found])
        if len(seen) == 1:
            aws("ec2").cancel_capacity_reservation(CapacityReservationId=held)
    assert seen == [[True], []]


def test_reservations_and_blocks_are_counted_by_kind_until_they_are_over(aws: Clients, box: BoxStatus) -> None:
    held, over, block = _reserve(aws), _reserve(aws), _block(aws)
    aws("ec2").cancel_capacity_reservation(CapacityReservationId=over)
    (bought,) = aws("ec2").describe_capacity_blocks()["CapacityBlocks"]
    assert inventory(box.dir) == {
        "ec2/capacity-block": [bought["CapacityBlockId"]],
        "ec2/capacity-reservation": sorted([held, block]),
    }


def test_reservations_and_blocks_survive_a_restart(state_directory: Path) -> None:
    shown = []
    for _ in range(2):
        status = boxes.start(state_directory)

        def aws(service: str, status: BoxStatus = status) -> Any:
            return boxes.client(status, service)

        if not shown:
            _reserve(aws, 3)
            _block(aws)
        found = aws("ec2").describe_capacity_reservations()["CapacityReservations"]
        shown.append((found, aws("ec2").describe_capacity_blocks()["CapacityBlocks"]))
        client.stop(state_directory)
    assert (len(shown[0][0]), shown[0] == shown[1]) == (2, True)
