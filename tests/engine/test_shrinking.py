"""Which subnets of a base's state its plan has no more."""

from __future__ import annotations

from typing import Any

from corral.engine.shrinking import SUBNET, leaving_subnets
from environments import dev_base


def subnet(id: str, zone: str, cidr: str) -> dict[str, Any]:
    return {"type": SUBNET, "id": id, "outputs": {"availabilityZoneId": zone, "cidrBlock": cidr}}


STATE = (
    {"type": "aws:ec2/vpc:Vpc", "id": "vpc-1", "outputs": {}},
    *(subnet(f"subnet-{zone.zone_id}", zone.zone_id, str(zone.private)) for zone in dev_base().zones),
    subnet("subnet-public", dev_base().public.zone_id, str(dev_base().public.cidr)),
)


def test_none_leaves_where_the_plan_is_what_is_there() -> None:
    assert leaving_subnets(STATE, dev_base()) == {}


def test_a_subnet_of_a_zone_that_the_plan_lacks_leaves() -> None:
    assert leaving_subnets((*STATE, subnet("subnet-9", "use1-az6", "10.64.160.0/19")), dev_base()) == {
        "subnet-9": "use1-az6"
    }


def test_a_subnet_whose_addresses_change_leaves() -> None:
    assert leaving_subnets((*STATE, subnet("subnet-9", "use1-az1", "10.9.0.0/19")), dev_base()) == {
        "subnet-9": "use1-az1"
    }
