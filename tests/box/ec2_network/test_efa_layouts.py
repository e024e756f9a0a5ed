"""Types whose EFA interfaces are also ENA: launched as planned, with an address for each interface."""

from __future__ import annotations

from typing import Any

import pytest
from vpc_fixtures import Clients

from corral.catalog.aws.instance_types import find_instance_type
from corral.catalog.aws.zone_offerings import offered_zones
from corral.plan.network_interfaces import plan_nics

ZONES = {
    "p4d.24xlarge": ("us-east-1", 4),
    "p5.48xlarge": ("us-east-1", 32),
    "p5en.48xlarge": ("us-west-2", 16),
    "p6-b200.48xlarge": ("us-west-2", 8),
    "p6-b300.48xlarge": ("us-west-2", 17),
    "g6e.48xlarge": ("us-east-1", 4),
    "trn2.48xlarge": ("us-east-2", 16),
}


def launched(aws: Clients, name: str, region: str) -> tuple[int, int]:
    """How many interfaces the machine has, and how many addresses of its subnet it takes."""
    ec2 = aws("ec2", region=region)
    vpc = ec2.create_vpc(CidrBlock="10.64.0.0/16")["Vpc"]["VpcId"]
    zone = offered_zones(name, region)[0]
    made = ec2.create_subnet(VpcId=vpc, CidrBlock="10.64.1.0/24", AvailabilityZoneId=zone)["Subnet"]
    nics: list[dict[str, Any]] = [
        {
            "NetworkCardIndex": nic.card,
            "DeviceIndex": nic.device,
            "InterfaceType": nic.interface_type.value,
            "SubnetId": made["SubnetId"],
        }
        for nic in plan_nics(find_instance_type(name), efa=True, with_ena=True)
    ]
    image = aws("ssm", region=region).get_parameter(Name="/corral-box/ami")["Parameter"]["Value"]
    template = ec2.create_launch_template(
        LaunchTemplateName=name,
        LaunchTemplateData={"ImageId": image, "InstanceType": name, "NetworkInterfaces": nics},
    )["LaunchTemplate"]["LaunchTemplateId"]
    (instance,) = ec2.run_instances(LaunchTemplate={"LaunchTemplateId": template}, MinCount=1, MaxCount=1)["Instances"]
    left = ec2.describe_subnets(SubnetIds=[made["SubnetId"]])["Subnets"][0]["AvailableIpAddressCount"]
    return len(instance["NetworkInterfaces"]), made["AvailableIpAddressCount"] - left


@pytest.mark.box
@pytest.mark.parametrize("name", ZONES)
def test_a_machine_with_ena_on_every_interface_takes_an_address_for_each(aws: Clients, name: str) -> None:
    region, interfaces = ZONES[name]
    assert launched(aws, name, region) == (interfaces, interfaces)
