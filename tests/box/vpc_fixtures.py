"""The network of the tests' launches, and the launch template of a p4d node with all four EFA cards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Clients = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchNetwork:
    """The ids of a VPC with a subnet in us-east-1b (use1-az1), a group, an image and a cluster placement group.

    The group is open to itself, as FSx requires.
    """

    vpc: str
    subnet: str
    group: str
    image: str
    placement: str


def create_launch_network(aws: Clients) -> LaunchNetwork:
    """A new network in an empty cloud."""
    ec2 = aws("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.64.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.64.1.0/24", AvailabilityZoneId="use1-az1")["Subnet"]["SubnetId"]
    group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
    itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=itself)
    ec2.authorize_security_group_egress(GroupId=group, IpPermissions=itself)
    ec2.create_placement_group(GroupName="train-az1", Strategy="cluster")
    aws("iam").create_instance_profile(InstanceProfileName="compute")
    image = aws("ssm").get_parameter(Name="/corral-box/ami")["Parameter"]["Value"]
    return LaunchNetwork(vpc=vpc, subnet=subnet, group=group, image=image, placement="train-az1")


def interfaces(launch_network: LaunchNetwork) -> list[dict[str, Any]]:
    """One ENA and four efa-only interfaces over the four cards of a p4d.24xlarge."""
    devices = [(0, 0, "interface"), (0, 1, "efa-only"), (1, 0, "efa-only"), (2, 0, "efa-only"), (3, 0, "efa-only")]
    return [
        {
            "NetworkCardIndex": card,
            "DeviceIndex": device,
            "InterfaceType": kind,
            "SubnetId": launch_network.subnet,
            "Groups": [launch_network.group],
            "DeleteOnTermination": True,
        }
        for card, device, kind in devices
    ]


def node_template(launch_network: LaunchNetwork) -> dict[str, Any]:
    """The data of a launch template for spot nodes of a queue."""
    return {
        "ImageId": launch_network.image,
        "InstanceType": "p4d.24xlarge",
        "NetworkInterfaces": interfaces(launch_network),
        "Placement": {"GroupName": launch_network.placement},
        "InstanceMarketOptions": {"MarketType": "spot", "SpotOptions": {"SpotInstanceType": "one-time"}},
        "IamInstanceProfile": {"Name": "compute"},
        "MetadataOptions": {
            "HttpTokens": "required",
            "HttpPutResponseHopLimit": 1,
            "InstanceMetadataTags": "enabled",
        },
        "BlockDeviceMappings": [
            {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 100, "VolumeType": "gp3", "DeleteOnTermination": True}}
        ],
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": [{"Key": "corral:queue", "Value": "train"}]},
            {"ResourceType": "volume", "Tags": [{"Key": "corral:queue", "Value": "train"}]},
        ],
        "InstanceInitiatedShutdownBehavior": "terminate",
        "UserData": "IyEvYmluL3NoCg==",
        "Monitoring": {"Enabled": True},
        "CapacityReservationSpecification": {"CapacityReservationPreference": "none"},
    }


def launch(aws: Clients, data: dict[str, Any], count: int = 1, **request: Any) -> list[dict[str, Any]]:
    """The instances that a template with this data gives."""
    ec2 = aws("ec2")
    name = f"test-{len(ec2.describe_launch_templates()['LaunchTemplates'])}"
    made = ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)["LaunchTemplate"]
    named = {"LaunchTemplateId": made["LaunchTemplateId"], "Version": "1"}
    return list(ec2.run_instances(LaunchTemplate=named, MinCount=count, MaxCount=count, **request)["Instances"])


def described(aws: Clients, instance_id: str) -> dict[str, Any]:
    """DescribeInstances' description of an instance."""
    found = aws("ec2").describe_instances(InstanceIds=[instance_id])
    return dict(found["Reservations"][0]["Instances"][0])
