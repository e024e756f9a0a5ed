"""Stand-ins that an up in the box creates for the user's buckets, reservations and capacity blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from boxes import running_box
from corral.box import client
from corral.box.client import BoxStatus
from corral.engine.lifecycle.external_resources import (
    ReservedCapacity,
    create_buckets,
    create_capacity,
    create_role_boundary,
    create_spot_role,
    reserved_capacity,
)
from corral.engine.pulumi.engine_account import Account
from corral.model.enums import Market
from corral.spec.models.cluster import ClusterSpec
from corral.spec.models.queues import NodesSpec, PoolSpec, QueueSpec

FIRST, SECOND = "cr-0123456789abcdef0", "cr-0fedcba9876543210"
KIND, ZONE = "p4d.24xlarge", "use1-az1"


@pytest.fixture(scope="module")
def session_box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    with running_box(tmp_path_factory.mktemp("belongings") / "box") as status:
        yield status


@pytest.fixture
def box(session_box: BoxStatus) -> BoxStatus:
    """A running box with an empty account."""
    client.reset(session_box.dir)
    return session_box


def account(box: BoxStatus, region: str = "us-east-1") -> Account:
    return Account(client.environment(box.dir), region)


def counts(market: Market, most: int, *ids: str, count: int | None = None) -> list[tuple[str, int]]:
    """The instance counts created for a queue of so many nodes with one pool of these ids."""
    pool = PoolSpec(market=market, zones=(ZONE,), ids=ids, count=count)
    queue = QueueSpec(name="train", instance_type=KIND, nodes=NodesSpec(max=most), capacity=(pool,))
    cluster = ClusterSpec(name="dev", region="us-east-1", file="", base="dev", queues=(queue,))
    return [(one.id, one.count) for one in reserved_capacity(cluster)]


def bought(id: str, *, is_block: bool = False, group: str | None = None) -> ReservedCapacity:
    return ReservedCapacity(id=id, instance_type=KIND, zone=ZONE, count=2, is_block=is_block, group=group)


def shown(box: BoxStatus, *ids: str) -> list[Any]:
    found = account(box).client("ec2").describe_capacity_reservations(CapacityReservationIds=ids)
    return list(found["CapacityReservations"])


def test_bucket_is_created_in_the_region_of_the_account(box: BoxStatus) -> None:
    elsewhere = account(box, "eu-west-1")
    messages = list(create_buckets(elsewhere, ["corpus"]))
    assert (messages, elsewhere.client("s3").get_bucket_location(Bucket="corpus")["LocationConstraint"]) == (
        ["created an empty s3://corpus in the box, as a stand-in for your bucket"],
        "eu-west-1",
    )


@pytest.mark.parametrize("market", [Market.RESERVATION, Market.CAPACITY_BLOCK])
def test_count_of_a_pool_is_spread_over_its_ids(market: Market) -> None:
    assert counts(market, 100, FIRST, SECOND, count=5) == [(FIRST, 3), (SECOND, 2)]


def test_a_reservation_of_unknown_size_holds_its_whole_queue() -> None:
    assert counts(Market.RESERVATION, 100, FIRST) == [(FIRST, 100)]


def test_block_holds_at_most_what_aws_sells() -> None:
    assert counts(Market.CAPACITY_BLOCK, 200, FIRST, SECOND) == [(FIRST, 64), (SECOND, 64)]


def test_blocks_of_one_pool_are_active_at_once(box: BoxStatus) -> None:
    list(create_capacity(account(box), [bought(id, is_block=True) for id in (FIRST, SECOND)]))
    assert [(one["CapacityReservationId"], one["State"]) for one in shown(box, FIRST, SECOND)] == [
        (FIRST, "active"),
        (SECOND, "active"),
    ]


def test_reservations_in_a_group_accept_launches_that_name_the_group(box: BoxStatus) -> None:
    list(create_capacity(account(box), [bought(id, group="ml-team") for id in (FIRST, SECOND)]))
    ec2 = account(box).client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/24")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24", AvailabilityZoneId=ZONE)["Subnet"]["SubnetId"]
    ec2.run_instances(
        ImageId=ec2.describe_images()["Images"][0]["ImageId"],
        InstanceType=KIND,
        MinCount=1,
        MaxCount=1,
        SubnetId=subnet,
        Placement={"GroupName": "ml-team"},
        CapacityReservationSpecification={"CapacityReservationTarget": {"CapacityReservationId": SECOND}},
    )
    assert [(one["PlacementGroupArn"], one["AvailableInstanceCount"]) for one in shown(box, FIRST, SECOND)] == [
        ("arn:aws:ec2:us-east-1:123456789012:placement-group/ml-team", 2),
        ("arn:aws:ec2:us-east-1:123456789012:placement-group/ml-team", 1),
    ]


def linked_roles(box: BoxStatus) -> list[str]:
    found = account(box).client("iam").list_roles(PathPrefix="/aws-service-role/")["Roles"]
    return [one["RoleName"] for one in found]


def test_a_new_account_gets_the_role_of_spot(box: BoxStatus) -> None:
    lines = list(create_spot_role(account(box)))
    assert (lines, linked_roles(box)) == (
        ["created the service-linked role of spot.amazonaws.com in the box, as `corral bootstrap` does"],
        ["AWSServiceRoleForEC2Spot"],
    )


def test_an_account_with_roles_of_services_keeps_what_it_lacks(box: BoxStatus) -> None:
    account(box).client("iam").create_service_linked_role(AWSServiceName="fsx.amazonaws.com")
    assert (list(create_spot_role(account(box))), linked_roles(box)) == ([], ["AWSServiceRoleForAmazonFSx"])


def test_a_box_gets_the_boundary_of_roles_once(box: BoxStatus) -> None:
    made = [list(create_role_boundary(account(box))) for _ in range(2)]
    assert made == [["created the policy guards-boundary-us-east-1 in the box, as `corral bootstrap` does"], []]
