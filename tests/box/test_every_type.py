"""Every type of the catalogue that can be rented: planned, rendered, launched with the interfaces its cards allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import boxes
from corral import render
from corral.box.control import BoxStatus
from corral.catalog.instances import instance_types
from corral.catalog.offerings import offered_zones
from corral.catalog.regions import regions
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.parse import parse_base, parse_cluster
from corral.spec.surroundings import Surroundings

pytestmark = pytest.mark.box


def home_of(name: str) -> tuple[str, str]:
    """A region and a zone of it that offer the type; empty where the snapshot knows none."""
    for region in ("us-east-1", "us-east-2", "us-west-2", *regions()):
        if zones := offered_zones(name, region):
            return region, zones[0]
    return "", ""


RENTABLE = [name for name in instance_types() if home_of(name)[0]]


def planned(name: str) -> ClusterPlan:
    """A cluster with a queue of two such machines, on a base in the zone that offers them."""
    region, zone = home_of(name)
    machine = instance_types()[name]
    neuron = machine.accelerator is not None and machine.accelerator.vendor.value == "neuron"
    base = parse_base({"network": {"zones": [zone]}}, name="b", where="b", around=Surroundings(region=region))
    market = "on-demand" if "on-demand" in machine.markets else machine.markets[0]
    queue: dict[str, Any] = {"name": "q", "instance_type": name, "nodes": {"max": 2}, "capacity": [{"market": market}]}
    if market == "capacity-block":
        queue["capacity"] = [{"market": market, "ids": ["cr-0123456789abcdef0"], "zones": [zone]}]
    if neuron:
        queue["image"] = {"profile": "ubuntu-24.04-neuron-dlami"}
    around = Surroundings(region=region, base=base)
    return plan_cluster(parse_cluster({"queues": [queue]}, name="c", where="c", around=around), plan_base(base))


@pytest.fixture(scope="module")
def grounds(session_box: BoxStatus) -> Iterator[Any]:
    """Gives a client of the region, a subnet in the zone, and an image, made once for each zone."""

    @cache
    def ground(region: str, zone: str) -> tuple[Any, str, str]:
        ec2 = boxes.client(session_box, "ec2", region)
        vpc = ec2.create_vpc(CidrBlock="10.64.0.0/16")["Vpc"]["VpcId"]
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.64.0.0/19", AvailabilityZoneId=zone)["Subnet"]["SubnetId"]
        image = boxes.client(session_box, "ssm", region).get_parameter(Name="/corral-box/ami")["Parameter"]["Value"]
        return ec2, subnet, image

    yield ground


def interfaces(queue: QueuePlan, subnet: str) -> list[Mapping[str, Any]]:
    return [
        {
            "NetworkCardIndex": nic.card,
            "DeviceIndex": nic.device,
            "InterfaceType": nic.interface_type.value,
            "SubnetId": subnet,
        }
        for nic in queue.nics
    ]


@pytest.mark.parametrize("name", RENTABLE)
def test_a_type_is_launched_with_the_interfaces_that_are_planned(name: str, grounds: Any) -> None:
    (queue,) = planned(name).queues
    ec2, subnet, image = grounds(*home_of(name))
    nics = interfaces(queue, subnet)
    made = ec2.run_instances(ImageId=image, InstanceType=name, MinCount=1, MaxCount=1, NetworkInterfaces=nics)
    (instance,) = made["Instances"]
    kinds = sorted(
        (one["Attachment"]["NetworkCardIndex"], one["Attachment"]["DeviceIndex"], one["InterfaceType"])
        for one in instance["NetworkInterfaces"]
    )
    ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    assert kinds == sorted((nic.card, nic.device, nic.interface_type.value) for nic in queue.nics)


@pytest.mark.parametrize("name", RENTABLE)
def test_slurms_files_name_a_types_nodes(name: str) -> None:
    plan = planned(name)
    text = render.cluster_files(replace(plan, name="c"))["slurm/slurm.conf"]
    assert [line.split(" ")[0] for line in text.splitlines() if line.startswith("NodeName=")] == ["NodeName=q-[1-2]"]
