"""A program that creates a cloud with instances of all kinds in its own process, and prints the desired machines.

It is a process of its own since the box's services replace moto's for good, and other tests are about plain moto. It
prints one JSON document; instances are named by their Name tag, interfaces and other ids by what they are.
"""

from __future__ import annotations

import base64
import json
import sys
from dataclasses import asdict
from typing import Any

import boto3
from botocore.config import Config
from moto import mock_aws
from moto.ec2.models import ec2_backends
from vpc_fixtures import LaunchNetwork, create_launch_network, interfaces

from corral.box.account import ACCOUNT
from corral.box.daemon.moto_overrides import install
from corral.box.ec2 import instance_state
from corral.box.machines.desired_machines import desired_machines, dns_names, existing_resources
from corral.box.machines.imds_data import instance_metadata
from corral.box.secret import BoxSecret
from corral.catalog.aws.images import BOX_PROFILE

REGION = "us-east-1"
SCRIPT = "#!/bin/sh\n"
SECRET = BoxSecret("5e" * 32)
# Ten launches in a row are more than EC2 lets happen in a moment, and so does the box.
PATIENT = Config(retries={"mode": "standard", "total_max_attempts": 8})


def aws(service: str) -> Any:
    """A client of this process's cloud."""
    session = boto3.Session("x", "x", region_name=REGION)
    return session.client(service, config=PATIENT)


def launch(launch_network: LaunchNetwork, name: str, **request: Any) -> str:
    """The id of an instance of this name."""
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": name}]}]
    wanted = {
        "ImageId": launch_network.image,
        "InstanceType": "m7i.large",
        "UserData": SCRIPT,
        "TagSpecifications": tags,
    }
    subnet = {} if "NetworkInterfaces" in request else {"SubnetId": launch_network.subnet}
    made = aws("ec2").run_instances(**{**wanted, **subnet, **request}, MinCount=1, MaxCount=1)
    return str(made["Instances"][0]["InstanceId"])


def put_profiles() -> None:
    """A profile with a role, and one whose role and profile are deleted later; `compute`, of the network, has none."""
    iam = aws("iam")
    for name in ("working", "leaving"):
        iam.create_role(RoleName=f"{name}-role", AssumeRolePolicyDocument="{}")
        iam.create_instance_profile(InstanceProfileName=name)
        iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=f"{name}-role")


def put_names(launch_network: LaunchNetwork, name: str, vpc: str | None) -> None:
    """A zone with an address, an alias and a second address in it; a public one without a VPC."""
    route53 = aws("route53")
    where: dict[str, Any] = {"HostedZoneConfig": {"PrivateZone": True}, "VPC": {"VPCRegion": REGION, "VPCId": vpc}}
    made = route53.create_hosted_zone(Name=name, CallerReference=name, **(where if vpc else {}))
    zone = made["HostedZone"]["Id"]
    rows = (
        ("HEAD", "A", ["10.64.1.5"]),
        ("two", "A", ["10.64.1.6", "10.64.1.7"]),
        ("alias", "CNAME", [f"head.{name}"]),
    )
    for label, kind, values in rows:
        record = {"Name": f"{label}.{name}", "Type": kind, "TTL": 1, "ResourceRecords": [{"Value": v} for v in values]}
        batch = {"Changes": [{"Action": "UPSERT", "ResourceRecordSet": record}]}
        route53.change_resource_record_sets(HostedZoneId=zone, ChangeBatch=batch)


def build() -> dict[str, Any]:
    """Create the cloud and print the desired machines."""
    ec2, launch_network = aws("ec2"), create_launch_network(aws)
    put_profiles()
    other = ec2.create_subnet(VpcId=launch_network.vpc, CidrBlock="10.64.2.0/24", AvailabilityZone="us-east-1a")[
        "Subnet"
    ]
    ec2.associate_vpc_cidr_block(VpcId=launch_network.vpc, CidrBlock="10.65.0.0/16")
    ubuntu = "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"
    ids = {
        "plain": launch(launch_network, "plain"),
        "other-image": launch(
            launch_network, "other-image", ImageId=aws("ssm").get_parameter(Name=ubuntu)["Parameter"]["Value"]
        ),
        "no-user-data": launch(launch_network, "no-user-data", UserData=""),
        "stopped": launch(launch_network, "stopped"),
        "terminated": launch(launch_network, "terminated"),
        "p5": launch(launch_network, "p5", InstanceType="p5.48xlarge", NetworkInterfaces=p5_interfaces(launch_network)),
        "trainium": launch(launch_network, "trainium", InstanceType="trn1.32xlarge", SubnetId=other["SubnetId"]),
        "working": launch(
            launch_network,
            "working",
            IamInstanceProfile={"Name": "working"},
            MetadataOptions={"InstanceMetadataTags": "enabled"},
        ),
        "empty-profile": launch(launch_network, "empty-profile", IamInstanceProfile={"Name": "compute"}),
        "lost-profile": launch(launch_network, "lost-profile", IamInstanceProfile={"Name": "leaving"}),
    }
    ec2.stop_instances(InstanceIds=[ids["stopped"]])
    ec2.terminate_instances(InstanceIds=[ids["terminated"]])
    iam = aws("iam")
    iam.remove_role_from_instance_profile(InstanceProfileName="leaving", RoleName="leaving-role")
    iam.delete_instance_profile(InstanceProfileName="leaving")
    zone = ec2.describe_subnets(SubnetIds=[launch_network.subnet])["Subnets"][0]["AvailabilityZone"]
    volume = ec2.create_volume(Size=1, AvailabilityZone=zone)["VolumeId"]
    ec2.attach_volume(VolumeId=volume, InstanceId=ids["plain"], Device="/dev/sdf")
    elsewhere = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    for name, vpc in (
        ("dev.corral.internal", launch_network.vpc),
        ("other.internal", elsewhere),
        ("example.com", None),
    ):
        put_names(launch_network, name, vpc)
    named = {value: key for key, value in {**ids, "volume": volume, "vpc": launch_network.vpc}.items()}
    backend = ec2_backends[ACCOUNT][REGION]
    wanted = [asdict(one) for one in desired_machines()]
    metadata = {
        name: asdict(instance_metadata(backend, backend.get_instance(ids[name]), SECRET))
        for name in ("plain", "p5", "working")
    }
    metadata |= {
        name: asdict(instance_metadata(backend, backend.get_instance(ids[name]), SECRET))
        for name in ("empty-profile", "lost-profile")
    }
    exists = existing_resources()
    reservation = ec2.describe_instances(InstanceIds=[ids["plain"]])["Reservations"][0]["ReservationId"]
    return {
        "wanted": {
            named[one["instance_id"]]: {**one, "volumes": {named[id]: size for id, size in one["volumes"].items()}}
            for one in wanted
        },
        "names": dict(dns_names(launch_network.vpc)),
        "metadata": metadata,
        "reservation": reservation,
        "instances": sorted(named[id] for id in exists.instances),
        "listed": sorted(named[id] for id in exists.listed - exists.instances),
    }


def p5_interfaces(launch_network: LaunchNetwork) -> list[dict[str, Any]]:
    """The 33 of a p5.48xlarge: one with an address, and one for EFA alone on each of its cards."""
    first, *_ = interfaces(launch_network)
    efa = {**first, "InterfaceType": "efa-only", "DeviceIndex": 1}
    return [first, *({**efa, "NetworkCardIndex": card} for card in range(32))]


def plain(value: Any) -> str:
    """Addresses, times and bytes as texts."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


if __name__ == "__main__":
    install()
    instance_state.bootable_images = frozenset((BOX_PROFILE,))
    with mock_aws():
        json.dump(build(), sys.stdout, default=plain)
