"""Subnets of a base and placement groups of a cluster that the plan removes."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any

from corral.engine.lifecycle.removal_guard import GROUP, SUBNET, removed_groups, removed_subnets
from corral.plan.subnets import plan_public, plan_zones
from environments import dev_base
from render.plans import dev, train

NAMES = {"use1-az1": "us-east-1b", "use1-az2": "us-east-1a", "use1-az6": "us-east-1d"}


def subnet(id: str, zone: str, cidr: str) -> dict[str, Any]:
    outputs = {"availabilityZoneId": zone, "availabilityZone": NAMES[zone], "cidrBlock": cidr}
    return {"type": SUBNET, "id": id, "outputs": outputs}


STATE = (
    {"type": "aws:ec2/vpc:Vpc", "id": "vpc-1", "outputs": {}},
    *(subnet(f"subnet-{zone.zone_id}", zone.zone_id, str(zone.private)) for zone in dev_base().zones),
    subnet("subnet-public", dev_base().public.zone_id, str(dev_base().public.cidr)),
)


def test_unchanged_plan_removes_no_subnet() -> None:
    assert removed_subnets(STATE, dev_base()) == {}


def test_subnet_of_a_removed_zone_is_removed() -> None:
    assert removed_subnets((*STATE, subnet("subnet-9", "use1-az6", "10.64.160.0/19")), dev_base()) == {
        "subnet-9": "use1-az6"
    }


def test_subnet_with_a_changed_cidr_is_removed() -> None:
    assert removed_subnets((*STATE, subnet("subnet-9", "use1-az1", "10.9.0.0/19")), dev_base()) == {
        "subnet-9": "use1-az1"
    }


def test_base_with_named_zones_removes_only_subnets_of_removed_zones() -> None:
    cidr = IPv4Network("10.64.0.0/16")
    plan = replace(
        dev_base(), zones=plan_zones(cidr, ["us-east-1a", "us-east-1b"]), public=plan_public(cidr, "us-east-1a")
    )
    state = (
        subnet("subnet-a", "use1-az2", "10.64.0.0/19"),
        subnet("subnet-b", "use1-az1", "10.64.32.0/19"),
        subnet("subnet-public", "use1-az2", "10.64.224.0/26"),
        subnet("subnet-d", "use1-az6", "10.64.96.0/19"),
    )
    assert removed_subnets(state, plan) == {"subnet-d": "us-east-1d"}


def group(key: str) -> dict[str, Any]:
    urn = f"urn:pulumi:dev::corral-cluster::corral:aws:Queues${GROUP}::queues-group-{key}"
    return {"type": GROUP, "id": f"queues-group-{key}-1a2b3c4", "urn": urn}


def test_placement_group_of_a_removed_queue_is_removed() -> None:
    state = [group(one.key) for one in dev(train()).placement_groups]
    assert removed_groups([*state, group("eval-use1-az1")], dev(train())) == {"queues-group-eval-use1-az1-1a2b3c4"}


def test_smaller_queue_keeps_its_placement_groups() -> None:
    state = [group(one.key) for one in dev(train()).placement_groups]
    assert (len(state), removed_groups(state, dev(replace(train(), max_nodes=1)))) == (2, frozenset())
