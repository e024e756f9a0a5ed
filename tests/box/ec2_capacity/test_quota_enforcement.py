"""Launches and resources beyond the account's quotas."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from vpc_fixtures import Clients, LaunchNetwork

from corral.box import control
from corral.box.client import BoxStatus

SPOT = {"InstanceMarketOptions": {"MarketType": "spot"}}
P_ON_DEMAND, P4_SPOT, P5_SPOT = "L-417A185B", "L-7212CCBC", "L-C4BD4855"
TWO_P4D = 192  # vCPUs
ALL_FULL = (
    "You have requested more vCPU capacity than your current vCPU limit of 192 allows for the instance bucket that the"
    " specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an"
    " adjustment to this limit."
)


def run(aws: Clients, launch_network: LaunchNetwork, least: int, most: int, **overrides: Any) -> list[str]:
    """The ids of new p4d instances in us-east-1b; `overrides` change the request."""
    query = {
        "InstanceType": "p4d.24xlarge",
        "ImageId": launch_network.image,
        "SubnetId": launch_network.subnet,
        **overrides,
    }
    return [one["InstanceId"] for one in aws("ec2").run_instances(MinCount=least, MaxCount=most, **query)["Instances"]]


def reserve(aws: Clients, count: int) -> str:
    made = aws("ec2").create_capacity_reservation(
        InstanceType="p4d.24xlarge", InstancePlatform="Linux/UNIX", AvailabilityZone="us-east-1b", InstanceCount=count
    )
    return str(made["CapacityReservation"]["CapacityReservationId"])


def in_reservation(identity: str) -> dict[str, Any]:
    """The parameters of a launch into this reservation."""
    return {"CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": identity}}}


def refused(act: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[str, str]:
    """The code and the words with which a call was refused."""
    with pytest.raises(ClientError) as raised:
        act(*arguments, **named)
    return raised.value.response["Error"]["Code"], raised.value.response["Error"]["Message"]


def test_a_launch_beyond_the_vcpus_on_demand_is_refused(
    aws: Clients, launch_network: LaunchNetwork, box: BoxStatus
) -> None:
    control.set_quota(box.dir, P_ON_DEMAND, TWO_P4D)
    run(aws, launch_network, 1, 1)
    result = refused(run, aws, launch_network, 2, 2)
    assert (result, len(run(aws, launch_network, 1, 1))) == (("VcpuLimitExceeded", ALL_FULL), 1)


def test_a_launch_beyond_the_vcpus_on_spot_is_refused(
    aws: Clients, launch_network: LaunchNetwork, box: BoxStatus
) -> None:
    control.set_quota(box.dir, P4_SPOT, TWO_P4D)
    run(aws, launch_network, 2, 2, **SPOT)
    result = refused(run, aws, launch_network, 1, 1, **SPOT)
    assert result == ("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")


def test_as_many_instances_start_as_the_quota_has_vcpus_for(
    aws: Clients, launch_network: LaunchNetwork, box: BoxStatus
) -> None:
    control.set_quota(box.dir, P_ON_DEMAND, TWO_P4D + 95)
    assert len(run(aws, launch_network, 1, 5)) == 2


def test_each_market_and_family_has_its_own_vcpus(aws: Clients, launch_network: LaunchNetwork, box: BoxStatus) -> None:
    for code in (P_ON_DEMAND, P4_SPOT):
        control.set_quota(box.dir, code, 0)
    spot = run(aws, launch_network, 1, 1, InstanceType="p5.48xlarge", **SPOT)
    assert (len(spot), len(run(aws, launch_network, 1, 1, InstanceType="m7i.2xlarge"))) == (1, 1)


def test_terminated_and_stopped_instances_do_not_count(
    aws: Clients, launch_network: LaunchNetwork, box: BoxStatus
) -> None:
    control.set_quota(box.dir, P_ON_DEMAND, TWO_P4D)
    first, second = run(aws, launch_network, 2, 2)
    aws("ec2").terminate_instances(InstanceIds=[first])
    aws("ec2").stop_instances(InstanceIds=[second])
    assert len(run(aws, launch_network, 2, 2)) == 2


def test_a_stopped_instance_does_not_start_beyond_the_quota(
    aws: Clients, launch_network: LaunchNetwork, box: BoxStatus
) -> None:
    control.set_quota(box.dir, P_ON_DEMAND, TWO_P4D)
    (stopped,) = run(aws, launch_network, 1, 1)
    aws("ec2").stop_instances(InstanceIds=[stopped])
    run(aws, launch_network, 2, 2)
    assert refused(aws("ec2").start_instances, InstanceIds=[stopped]) == ("VcpuLimitExceeded", ALL_FULL)


def test_a_reservation_counts_once_used_or_not(aws: Clients, launch_network: LaunchNetwork, box: BoxStatus) -> None:
    control.set_quota(box.dir, P_ON_DEMAND, TWO_P4D)
    reservation = reserve(aws, 2)
    outside = {"CapacityReservationSpecification": {"CapacityReservationPreference": "none"}}
    result = refused(run, aws, launch_network, 1, 1, **outside)
    assert (result[0], len(run(aws, launch_network, 2, 2, **in_reservation(reservation)))) == ("VcpuLimitExceeded", 2)


def test_a_reservation_beyond_the_quota_is_refused(aws: Clients, box: BoxStatus) -> None:
    control.set_quota(box.dir, P_ON_DEMAND, TWO_P4D)
    reservation = reserve(aws, 2)
    grown = refused(aws("ec2").modify_capacity_reservation, CapacityReservationId=reservation, InstanceCount=3)
    assert (refused(reserve, aws, 1), grown) == (("VcpuLimitExceeded", ALL_FULL),) * 2


def test_a_capacity_block_counts_in_no_market(aws: Clients, launch_network: LaunchNetwork, box: BoxStatus) -> None:
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
    assert len(run(aws, launch_network, 2, 2, **market, **into)) == 2


def test_the_fifth_vpc_besides_the_default_one_is_refused(aws: Clients, box: BoxStatus) -> None:
    ec2 = aws("ec2")
    for _ in range(4):
        ec2.create_vpc(CidrBlock="10.0.0.0/16")
    result = refused(ec2.create_vpc, CidrBlock="10.0.0.0/16")
    assert result == ("VpcLimitExceeded", "The maximum number of VPCs has been reached.")


def test_the_sixth_elastic_address_is_refused(aws: Clients, box: BoxStatus) -> None:
    ec2 = aws("ec2")
    for _ in range(5):
        ec2.allocate_address(Domain="vpc")
    result = refused(ec2.allocate_address, Domain="vpc")
    assert result == ("AddressLimitExceeded", "The maximum number of addresses has been reached.")


def test_a_nat_gateway_beyond_the_quota_of_its_zone_is_refused(
    aws: Clients, launch_network: LaunchNetwork, box: BoxStatus
) -> None:
    control.set_quota(box.dir, "L-FE5A380F", 1)
    ec2 = aws("ec2")
    gone = ec2.create_nat_gateway(SubnetId=launch_network.subnet, ConnectivityType="private")["NatGateway"][
        "NatGatewayId"
    ]
    ec2.delete_nat_gateway(NatGatewayId=gone)
    ec2.create_nat_gateway(SubnetId=launch_network.subnet, ConnectivityType="private")
    elsewhere = ec2.create_subnet(VpcId=launch_network.vpc, CidrBlock="10.64.2.0/24", AvailabilityZone="us-east-1c")[
        "Subnet"
    ]
    ec2.create_nat_gateway(SubnetId=elsewhere["SubnetId"], ConnectivityType="private")
    result = refused(ec2.create_nat_gateway, SubnetId=launch_network.subnet, ConnectivityType="private")
    assert result == ("NatGatewayLimitExceeded", "Performing this operation would exceed the limit of 1 NAT gateways")


def test_a_lowered_quota_does_not_affect_running_instances(
    aws: Clients, launch_network: LaunchNetwork, box: BoxStatus
) -> None:
    run(aws, launch_network, 2, 2)
    control.set_quota(box.dir, P_ON_DEMAND, 96)
    result = refused(run, aws, launch_network, 1, 1)
    states = [one["State"]["Name"] for held in aws("ec2").describe_instances()["Reservations"]
              for one in held["Instances"]]  # fmt: skip
    assert (result[0], states) == ("VcpuLimitExceeded", ["running", "running"])
