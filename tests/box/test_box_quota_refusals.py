"""What EC2 refuses because the account has no more of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from ground import Clients, Ground

from corral.box import control
from corral.box.control import BoxStatus

SPOT = {"InstanceMarketOptions": {"MarketType": "spot"}}
P_ON_DEMAND, P4_SPOT, P5_SPOT = "L-417A185B", "L-7212CCBC", "L-C4BD4855"
TWO_P4D = 192  # vCPUs
ALL_FULL = (
    "You have requested more vCPU capacity than your current vCPU limit of 192 allows for the instance bucket that the"
    " specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an"
    " adjustment to this limit."
)


def run(aws: Clients, ground: Ground, least: int, most: int, **wishes: Any) -> list[str]:
    """The ids of p4d machines, or whatever `wishes` say, in us-east-1b."""
    asked = {"InstanceType": "p4d.24xlarge", "ImageId": ground.image, "SubnetId": ground.subnet, **wishes}
    return [one["InstanceId"] for one in aws("ec2").run_instances(MinCount=least, MaxCount=most, **asked)["Instances"]]


def reserve(aws: Clients, count: int) -> str:
    made = aws("ec2").create_capacity_reservation(
        InstanceType="p4d.24xlarge", InstancePlatform="Linux/UNIX", AvailabilityZone="us-east-1b", InstanceCount=count
    )
    return str(made["CapacityReservation"]["CapacityReservationId"])


def in_reservation(identity: str) -> dict[str, Any]:
    """What a launch says that goes into this reservation."""
    return {"CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": identity}}}


def refused(act: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[str, str]:
    """The code and the words with which a call was refused."""
    with pytest.raises(ClientError) as raised:
        act(*arguments, **named)
    return raised.value.response["Error"]["Code"], raised.value.response["Error"]["Message"]


def test_a_launch_beyond_the_vcpus_on_demand_is_refused(aws: Clients, ground: Ground, box: BoxStatus) -> None:
    control.set_quota(box.dir, P_ON_DEMAND, TWO_P4D)
    run(aws, ground, 1, 1)
    told = refused(run, aws, ground, 2, 2)
    assert (told, len(run(aws, ground, 1, 1))) == (("VcpuLimitExceeded", ALL_FULL), 1)


def test_a_launch_beyond_the_vcpus_on_spot_is_refused(aws: Clients, ground: Ground, box: BoxStatus) -> None:
    control.set_quota(box.dir, P4_SPOT, TWO_P4D)
    run(aws, ground, 2, 2, **SPOT)
    told = refused(run, aws, ground, 1, 1, **SPOT)
    assert told == ("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")


def test_as_many_instances_start_as_the_quota_has_vcpus_for(aws: Clients, ground: Ground, box: BoxStatus) -> None:
    control.set_quota(box.dir, P_ON_DEMAND, TWO_P4D + 95)
    assert len(run(aws, ground, 1, 5)) == 2


def test_each_market_and_family_has_vcpus_of_its_own(aws: Clients, ground: Ground, box: BoxStatus) -> None:
    for code in (P_ON_DEMAND, P4_SPOT):
        control.set_quota(box.dir, code, 0)
    spot = run(aws, ground, 1, 1, InstanceType="p5.48xlarge", **SPOT)
    assert (len(spot), len(run(aws, ground, 1, 1, InstanceType="m7i.2xlarge"))) == (1, 1)


def test_what_has_ended_or_is_stopped_does_not_count(aws: Clients, ground: Ground, box: BoxStatus) -> None:
    control.set_quota(box.dir, P_ON_DEMAND, TWO_P4D)
    first, second = run(aws, ground, 2, 2)
    aws("ec2").terminate_instances(InstanceIds=[first])
    aws("ec2").stop_instances(InstanceIds=[second])
    assert len(run(aws, ground, 2, 2)) == 2


def test_a_stopped_instance_does_not_start_beyond_the_quota(aws: Clients, ground: Ground, box: BoxStatus) -> None:
    control.set_quota(box.dir, P_ON_DEMAND, TWO_P4D)
    (stopped,) = run(aws, ground, 1, 1)
    aws("ec2").stop_instances(InstanceIds=[stopped])
    run(aws, ground, 2, 2)
    assert refused(aws("ec2").start_instances, InstanceIds=[stopped]) == ("VcpuLimitExceeded", ALL_FULL)


def test_a_reservation_counts_used_or_not_and_what_runs_in_it_only_once(
    aws: Clients, ground: Ground, box: BoxStatus
) -> None:
    control.set_quota(box.dir, P_ON_DEMAND, TWO_P4D)
    reservation = reserve(aws, 2)
    outside = {"CapacityReservationSpecification": {"CapacityReservationPreference": "none"}}
    told = refused(run, aws, ground, 1, 1, **outside)
    assert (told[0], len(run(aws, ground, 2, 2, **in_reservation(reservation)))) == ("VcpuLimitExceeded", 2)


def test_a_reservation_beyond_the_quota_is_refused(aws: Clients, box: BoxStatus) -> None:
    control.set_quota(box.dir, P_ON_DEMAND, TWO_P4D)
    reservation = reserve(aws, 2)
    grown = refused(aws("ec2").modify_capacity_reservation, CapacityReservationId=reservation, InstanceCount=3)
    assert (refused(reserve, aws, 1), grown) == (("VcpuLimitExceeded", ALL_FULL),) * 2


def test_a_capacity_block_counts_in_no_market(aws: Clients, ground: Ground, box: BoxStatus) -> None:
    for code in (P_ON_DEMAND, P4_SPOT):
        control.set_quota(box.dir, code, 0)
    now, ec2 = datetime.now(UTC), aws("ec2")
    offer = ec2.describe_capacity_block_offerings(
        InstanceType="p4d.24xlarge", InstanceCount=2, CapacityDurationHours=48, EndDateRange=now + timedelta(days=20)
    )["CapacityBlockOfferings"]
    here = next(one["CapacityBlockOfferingId"] for one in offer if one["AvailabilityZone"] == "us-east-1b")
    block = ec2.purchase_capacity_block(CapacityBlockOfferingId=here, InstancePlatform="Linux/UNIX")
    market = {"InstanceMarketOptions": {"MarketType": "capacity-block"}}
    into = in_reservation(block["CapacityReservation"]["CapacityReservationId"])
    assert len(run(aws, ground, 2, 2, **market, **into)) == 2


def test_the_fifth_vpc_beside_the_default_one_is_refused(aws: Clients, box: BoxStatus) -> None:
    ec2 = aws("ec2")
    for _ in range(4):
        ec2.create_vpc(CidrBlock="10.0.0.0/16")
    told = refused(ec2.create_vpc, CidrBlock="10.0.0.0/16")
    assert told == ("VpcLimitExceeded", "The maximum number of VPCs has been reached.")


def test_the_sixth_elastic_address_is_refused(aws: Clients, box: BoxStatus) -> None:
    ec2 = aws("ec2")
    for _ in range(5):
        ec2.allocate_address(Domain="vpc")
    told = refused(ec2.allocate_address, Domain="vpc")
    assert told == ("AddressLimitExceeded", "The maximum number of addresses has been reached.")


def test_a_nat_gateway_beyond_the_quota_of_its_zone_is_refused(aws: Clients, ground: Ground, box: BoxStatus) -> None:
    control.set_quota(box.dir, "L-FE5A380F", 1)
    ec2 = aws("ec2")
    gone = ec2.create_nat_gateway(SubnetId=ground.subnet, ConnectivityType="private")["NatGateway"]["NatGatewayId"]
    ec2.delete_nat_gateway(NatGatewayId=gone)
    ec2.create_nat_gateway(SubnetId=ground.subnet, ConnectivityType="private")
    elsewhere = ec2.create_subnet(VpcId=ground.vpc, CidrBlock="10.64.2.0/24", AvailabilityZone="us-east-1c")["Subnet"]
    ec2.create_nat_gateway(SubnetId=elsewhere["SubnetId"], ConnectivityType="private")
    told = refused(ec2.create_nat_gateway, SubnetId=ground.subnet, ConnectivityType="private")
    assert told == ("NatGatewayLimitExceeded", "Performing this operation would exceed the limit of 1 NAT gateways")


def test_a_quota_that_sank_leaves_what_runs(aws: Clients, ground: Ground, box: BoxStatus) -> None:
    run(aws, ground, 2, 2)
    control.set_quota(box.dir, P_ON_DEMAND, 96)
    told = refused(run, aws, ground, 1, 1)
    states = [one["State"]["Name"] for held in aws("ec2").describe_instances()["Reservations"]
              for one in held["Instances"]]  # fmt: skip
    assert (told[0], states) == ("VcpuLimitExceeded", ["running", "running"])
