"""The facts about an adopted VPC as the box's EC2 gives them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

import boxes
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.preflight.adopted import adoption_facts
from corral.preflight.adoption import adoption_problems
from corral.spec.files import read_environment
from environments import PROJECT

pytestmark = pytest.mark.box
ENVIRONMENT = read_environment(PROJECT, "mixed")
BASE = plan_base(ENVIRONMENT.base)
CLUSTER = plan_cluster(ENVIRONMENT.cluster, BASE)


class Session:
    """A session in us-west-2 of a box."""

    def __init__(self, make: Any) -> None:
        self.client = make


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with boxes.running_box(tmp_path_factory.mktemp("box")) as box:
        yield Session(partial(boxes.client, box, region="us-west-2"))


def wished(kind: str, id: str) -> dict[str, Any]:
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": [{"Key": "corral-box:id", "Value": id}]}]}


def test_a_vpc_that_is_not_there_is_seen(session: Session) -> None:
    assert adoption_facts(session, BASE, CLUSTER).has_vpc is False


def test_a_bare_vpc_lacks_names_and_ways_out(session: Session) -> None:
    ec2 = session.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.20.0.0/16", **wished("vpc", str(BASE.adopted_vpc)))["Vpc"]["VpcId"]
    for zone in BASE.zones:
        ec2.create_subnet(
            VpcId=vpc,
            CidrBlock=str(zone.private),
            AvailabilityZoneId=zone.zone_id,
            **wished("subnet", str(zone.subnet)),
        )
    found = adoption_problems(BASE, CLUSTER, adoption_facts(session, BASE, CLUSTER))
    assert [problem.split(" - ")[0] for problem in found] == [
        "vpc-0123456789abcdef0 has DNS hostnames off, without which EFS and private zones answer by no name",
        *(
            f"subnet-0123456789abcdef{number} reaches no {what}"
            for number in range(3)
            for what in ("S3", "Session Manager")
        ),
    ]


def test_a_vpc_with_names_and_endpoints_is_good(session: Session) -> None:
    ec2, vpc = session.client("ec2"), str(BASE.adopted_vpc)
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    (table,) = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["RouteTables"]
    service = "com.amazonaws.us-west-2"
    ec2.create_vpc_endpoint(VpcId=vpc, ServiceName=f"{service}.s3", RouteTableIds=[table["RouteTableId"]])
    for name in ("ssm", "ssmmessages"):
        ec2.create_vpc_endpoint(
            VpcId=vpc,
            ServiceName=f"{service}.{name}",
            VpcEndpointType="Interface",
            SubnetIds=[str(BASE.zones[0].subnet)],
        )
    assert adoption_problems(BASE, CLUSTER, adoption_facts(session, BASE, CLUSTER)) == ()


def test_a_mount_target_of_the_home_in_another_subnet_of_the_zone_is_seen(session: Session) -> None:
    ec2, efs = session.client("ec2"), session.client("efs")
    zone = BASE.zones[0]
    other = ec2.create_subnet(VpcId=str(BASE.adopted_vpc), CidrBlock="10.20.0.0/24", AvailabilityZoneId=zone.zone_id)[
        "Subnet"
    ]["SubnetId"]
    named = efs.create_file_system(CreationToken="corral-mixed-home")["FileSystemId"]
    target = efs.create_mount_target(FileSystemId=named, SubnetId=other)["MountTargetId"]
    found = adoption_problems(BASE, CLUSTER, adoption_facts(session, BASE, CLUSTER))
    efs.delete_mount_target(MountTargetId=target)
    assert found == (
        f"{named}, the home of base mixed, has {target} in {other}, and EFS takes one alone in usw2-az2"
        " - give the base that subnet, or delete that one first",
    )


def test_addresses_of_the_clusters_file_systems_count_as_its_own(session: Session) -> None:
    efs, fsx, zone = session.client("efs"), session.client("fsx"), BASE.zones[1]
    (home,) = efs.describe_file_systems(CreationToken="corral-mixed-home")["FileSystems"]
    efs.create_mount_target(FileSystemId=home["FileSystemId"], SubnetId=str(zone.subnet))
    for cluster, size_gib in (("mixed", 4800), ("another", 2400)):
        fsx.create_file_system(
            FileSystemType="LUSTRE",
            StorageCapacity=size_gib,
            SubnetIds=[str(zone.subnet)],
            LustreConfiguration={"DeploymentType": "SCRATCH_2"},
            Tags=[{"Key": "corral:base", "Value": "mixed"}, {"Key": "corral:cluster", "Value": cluster}],
        )
    assert adoption_facts(session, BASE, CLUSTER).subnets[str(zone.subnet)].own == 1 + 3


def test_mount_targets_of_other_file_systems_are_no_problem(session: Session) -> None:
    efs = session.client("efs")
    named = efs.create_file_system(CreationToken="theirs")["FileSystemId"]
    efs.create_mount_target(FileSystemId=named, SubnetId=str(BASE.zones[1].subnet))
    assert adoption_problems(BASE, CLUSTER, adoption_facts(session, BASE, CLUSTER)) == ()


def test_the_heads_address_is_seen_to_be_taken(session: Session) -> None:
    made = session.client("ec2").create_network_interface(
        SubnetId=str(BASE.zones[0].subnet), PrivateIpAddress=str(CLUSTER.head.address)
    )
    id = made["NetworkInterface"]["NetworkInterfaceId"]
    assert adoption_facts(session, BASE, CLUSTER).taken == {"10.20.32.10": id}
