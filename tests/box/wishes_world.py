"""A program: a cloud in its own process, with instances of all kinds, and what the box then wants to be machines.

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
from ground import Ground, interfaces, lay
from moto import mock_aws
from moto.ec2.models import ec2_backends

from corral.box.control import ACCOUNT
from corral.box.instance_metadata import describe
from corral.box.machine_wishes import existing, names_in, wanted_machines
from corral.box.services import install

REGION = "us-east-1"
SCRIPT = "#!/bin/sh\n"
# Ten launches in a row are more than EC2 lets happen in a moment, and so does the box.
PATIENT = Config(retries={"mode": "standard", "total_max_attempts": 8})


def aws(service: str) -> Any:
    """A client of this process's cloud."""
    session = boto3.Session("x", "x", region_name=REGION)
    return session.client(service, config=PATIENT)


def launch(ground: Ground, name: str, **request: Any) -> str:
    """The id of an instance of this name."""
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": name}]}]
    wanted = {"ImageId": ground.image, "InstanceType": "m7i.large", "UserData": SCRIPT, "TagSpecifications": tags}
    place = {} if "NetworkInterfaces" in request else {"SubnetId": ground.subnet}
    made = aws("ec2").run_instances(**{**wanted, **place, **request}, MinCount=1, MaxCount=1)
    return str(made["Instances"][0]["InstanceId"])


def put_profiles() -> None:
    """A profile with a role, and one of a role and profile that go again; `compute`, from the ground, has none."""
    iam = aws("iam")
    for name in ("working", "leaving"):
        iam.create_role(RoleName=f"{name}-role", AssumeRolePolicyDocument="{}")
        iam.create_instance_profile(InstanceProfileName=name)
        iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=f"{name}-role")


def put_names(ground: Ground, name: str, vpc: str | None) -> None:
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
    """The world, and what the box makes of it."""
    ec2, ground = aws("ec2"), lay(aws)
    put_profiles()
    other = ec2.create_subnet(VpcId=ground.vpc, CidrBlock="10.64.2.0/24", AvailabilityZone="us-east-1a")["Subnet"]
    ubuntu = "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"
    ids = {
        "plain": launch(ground, "plain"),
        "other-image": launch(
            ground, "other-image", ImageId=aws("ssm").get_parameter(Name=ubuntu)["Parameter"]["Value"]
        ),
        "no-user-data": launch(ground, "no-user-data", UserData=""),
        "stopped": launch(ground, "stopped"),
        "terminated": launch(ground, "terminated"),
        "p5": launch(ground, "p5", InstanceType="p5.48xlarge", NetworkInterfaces=p5_interfaces(ground)),
        "trainium": launch(ground, "trainium", InstanceType="trn1.32xlarge", SubnetId=other["SubnetId"]),
        "working": launch(
            ground,
            "working",
            IamInstanceProfile={"Name": "working"},
            MetadataOptions={"InstanceMetadataTags": "enabled"},
        ),
        "empty-profile": launch(ground, "empty-profile", IamInstanceProfile={"Name": "compute"}),
        "lost-profile": launch(ground, "lost-profile", IamInstanceProfile={"Name": "leaving"}),
    }
    ec2.stop_instances(InstanceIds=[ids["stopped"]])
    ec2.terminate_instances(InstanceIds=[ids["terminated"]])
    iam = aws("iam")
    iam.remove_role_from_instance_profile(InstanceProfileName="leaving", RoleName="leaving-role")
    iam.delete_instance_profile(InstanceProfileName="leaving")
    zone = ec2.describe_subnets(SubnetIds=[ground.subnet])["Subnets"][0]["AvailabilityZone"]
    volume = ec2.create_volume(Size=1, AvailabilityZone=zone)["VolumeId"]
    ec2.attach_volume(VolumeId=volume, InstanceId=ids["plain"], Device="/dev/sdf")
    elsewhere = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    for name, vpc in (("dev.corral.internal", ground.vpc), ("other.internal", elsewhere), ("example.com", None)):
        put_names(ground, name, vpc)
    named = {value: key for key, value in {**ids, "volume": volume, "vpc": ground.vpc}.items()}
    backend = ec2_backends[ACCOUNT][REGION]
    wanted = [asdict(one) for one in wanted_machines()]
    told = {name: asdict(describe(backend, backend.get_instance(ids[name]))) for name in ("plain", "p5", "working")}
    told |= {
        name: asdict(describe(backend, backend.get_instance(ids[name]))) for name in ("empty-profile", "lost-profile")
    }
    exists = existing()
    return {
        "wanted": {
            named[one["instance_id"]]: {**one, "volumes": [named[id] for id in one["volumes"]]} for one in wanted
        },
        "names": dict(names_in(ground.vpc)),
        "told": told,
        "instances": sorted(named[id] for id in exists.instances),
        "listed": sorted(named[id] for id in exists.listed - exists.instances),
    }


def p5_interfaces(ground: Ground) -> list[dict[str, Any]]:
    """The 33 of a p5.48xlarge: one with an address, and one for EFA alone on each of its cards."""
    first, *_ = interfaces(ground)
    efa = {**first, "InterfaceType": "efa-only", "DeviceIndex": 1}
    return [first, *({**efa, "NetworkCardIndex": card} for card in range(32))]


def plain(value: Any) -> str:
    """Addresses, times and bytes as texts."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


if __name__ == "__main__":
    install()
    with mock_aws():
        json.dump(build(), sys.stdout, default=plain)
