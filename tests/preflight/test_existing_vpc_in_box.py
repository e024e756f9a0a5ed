"""The facts about an adopted VPC as the box's EC2 gives them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from finding_lines import NOW

import boxes
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.existing_vpc_check import ExistingVpcFacts, evaluate
from corral.preflight.existing_vpc_facts import fetch
from corral.preflight.preflight_findings import PreflightRequest
from corral.spec.yaml.stack_files import read_environment
from environments import PROJECT

pytestmark = pytest.mark.box
ENVIRONMENT = read_environment(PROJECT, "mixed")
BASE = plan_base(ENVIRONMENT.base)
CLUSTER = plan_cluster(ENVIRONMENT.cluster, BASE)
REQUEST = PreflightRequest(base=BASE, cluster=CLUSTER, now=NOW)


class Session:
    """A session in us-west-2 of a box."""

    def __init__(self, make: Any) -> None:
        self.client = make


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with boxes.running_box(tmp_path_factory.mktemp("box")) as box:
        yield Session(partial(boxes.client, box, region="us-west-2"))


def with_id(kind: str, id: str) -> dict[str, Any]:
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": [{"Key": "corral-box:id", "Value": id}]}]}


def facts(session: Session) -> ExistingVpcFacts:
    found = fetch(AwsQueryCache(session), REQUEST)
    assert found is not None
    return found


def problems(session: Session) -> list[tuple[str, str]]:
    """What each failure is about, and its message."""
    return [(one.about, one.message) for one in evaluate(REQUEST, facts(session)) if one.verdict == "fail"]


def test_a_missing_vpc_is_found_to_be_missing(session: Session) -> None:
    assert facts(session).has_vpc is False


def test_a_bare_vpc_lacks_dns_hostnames_and_routes_out(session: Session) -> None:
    ec2 = session.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.20.0.0/16", **with_id("vpc", str(BASE.adopted_vpc)))["Vpc"]["VpcId"]
    for zone in BASE.zones:
        ec2.create_subnet(
            VpcId=vpc,
            CidrBlock=str(zone.private),
            AvailabilityZoneId=zone.zone_id,
            **with_id("subnet", str(zone.subnet)),
        )
    assert problems(session) == [
        ("vpc-0123456789abcdef0", "DNS hostnames is off: names of EFS and of private zones do not resolve"),
        *(
            (f"subnet-0123456789abcdef{number}", f"cannot reach {what}")
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
    assert problems(session) == []


def test_a_mount_target_of_the_home_in_another_subnet_of_the_zone_is_seen(session: Session) -> None:
    ec2, efs = session.client("ec2"), session.client("efs")
    zone = BASE.zones[0]
    other = ec2.create_subnet(VpcId=str(BASE.adopted_vpc), CidrBlock="10.20.0.0/24", AvailabilityZoneId=zone.zone_id)[
        "Subnet"
    ]["SubnetId"]
    named = efs.create_file_system(CreationToken="corral-mixed-home")["FileSystemId"]
    target = efs.create_mount_target(FileSystemId=named, SubnetId=other)["MountTargetId"]
    found = problems(session)
    efs.delete_mount_target(MountTargetId=target)
    assert found == [(f"home {named}", f"has mount target {target} in {other}; EFS allows one in usw2-az2")]


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
    assert facts(session).subnets[str(zone.subnet)].own == 1 + 3


def test_mount_targets_of_other_file_systems_are_no_problem(session: Session) -> None:
    efs = session.client("efs")
    named = efs.create_file_system(CreationToken="theirs")["FileSystemId"]
    efs.create_mount_target(FileSystemId=named, SubnetId=str(BASE.zones[1].subnet))
    assert problems(session) == []


def test_the_heads_address_is_seen_to_be_taken(session: Session) -> None:
    made = session.client("ec2").create_network_interface(
        SubnetId=str(BASE.zones[0].subnet), PrivateIpAddress=str(CLUSTER.head.address)
    )
    id = made["NetworkInterface"]["NetworkInterfaceId"]
    assert facts(session).taken == {"10.20.32.10": id}
