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


def test_the_heads_address_is_seen_to_be_taken(session: Session) -> None:
    made = session.client("ec2").create_network_interface(
        SubnetId=str(BASE.zones[0].subnet), PrivateIpAddress=str(CLUSTER.head.address)
    )
    id = made["NetworkInterface"]["NetworkInterfaceId"]
    assert adoption_facts(session, BASE, CLUSTER).taken == {"10.20.32.10": id}
