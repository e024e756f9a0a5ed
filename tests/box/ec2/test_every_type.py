"""Every rentable type of the catalog: its launch template launches it, and slurm.conf describes it.

The templates are what the component registers with Pulumi, sent to the box as the box's provider sends them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import pytest

import boxes
from corral.box import client, control
from corral.box.client import BoxStatus
from corral.box.provider.aws_clients import ClientCache, RegionClients
from corral.box.provider.property_validation import Autonaming, check_inputs
from corral.box.provider.protobuf_values import from_struct, to_struct
from corral.box.provider.tables.compute.launch_templates import TEMPLATE
from corral.catalog.aws.instance_types import InstanceType, Vendor, instance_types
from corral.catalog.aws.regions import regions
from corral.catalog.aws.zone_offerings import offered_zones
from corral.components.queues import Queues, QueuesArgs
from corral.model.cluster import ClusterPlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.render.slurm_conf import slurm_conf
from corral.spec.loader import parse_base, parse_cluster
from corral.spec.validation_context import ValidationContext
from recorded import Recorder, record

pytestmark = [pytest.mark.box, pytest.mark.long]


def home_of(name: str) -> tuple[str, str]:
    """A region and zone that offer the type; empty if the snapshot has none."""
    for region in ("us-east-1", "us-east-2", "us-west-2", *regions()):
        if zones := offered_zones(name, region):
            return region, zones[0]
    return "", ""


OWN_IMAGE = "ami-0123456789abcdef0"
RENTABLE = [name for name in instance_types() if home_of(name)[0]]
# Source: EC2 User Guide, "Elastic Fabric Adapter" and "Maximize network bandwidth on Amazon EC2 instances with multiple
# network cards"; p6-b300's first card has no EFA.
EFA_INTERFACES = {
    "c7i.48xlarge": 1,
    "g5.48xlarge": 1,
    "g5.xlarge": 0,
    "g6e.48xlarge": 4,
    "m7i.2xlarge": 0,
    "p3dn.24xlarge": 1,
    "p4d.24xlarge": 4,
    "p4de.24xlarge": 4,
    "p5.48xlarge": 32,
    "p5.4xlarge": 1,
    "p5e.48xlarge": 32,
    "p5en.48xlarge": 16,
    "p6-b200.48xlarge": 8,
    "p6-b300.48xlarge": 16,
    "trn1.32xlarge": 8,
    "trn1n.32xlarge": 16,
    "trn2.48xlarge": 16,
}
NODE_LINES = {
    "g5.xlarge": (
        "NodeName=q-[1-2] Sockets=1 CoresPerSocket=2 ThreadsPerCore=2 RealMemory=15408 Gres=gpu:a10g:1"
        " Feature=g5.xlarge Weight=1 State=CLOUD"
    ),
    "m7i.2xlarge": (
        "NodeName=q-[1-2] Sockets=1 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=31129"
        " Feature=m7i.2xlarge Weight=1 State=CLOUD"
    ),
    "p4d.24xlarge": (
        "NodeName=q-[1-2] Sockets=2 CoresPerSocket=24 ThreadsPerCore=2 RealMemory=1120665 Gres=gpu:a100:8"
        " Feature=p4d.24xlarge,efa Weight=1 State=CLOUD"
    ),
    "p5.48xlarge": (
        "NodeName=q-[1-2] Sockets=2 CoresPerSocket=48 ThreadsPerCore=2 RealMemory=1992294 Gres=gpu:h100:8"
        " Feature=p5.48xlarge,efa Weight=1 State=CLOUD"
    ),
    "trn1.32xlarge": (
        "NodeName=q-[1-2] Sockets=2 CoresPerSocket=32 ThreadsPerCore=2 RealMemory=498073 Gres=neuron:trainium:16"
        " Feature=trn1.32xlarge,efa Weight=1 State=CLOUD"
    ),
}


@cache
def planned(name: str) -> ClusterPlan:
    """A cluster with a queue of two such machines, on a base in the zone that offers them."""
    region, zone = home_of(name)
    machine = instance_types()[name]
    base = parse_base({"network": {"zones": [zone]}}, name="b", where="b", context=ValidationContext(region=region))
    queue: dict[str, Any] = {"name": "q", "instance_type": name, "nodes": {"max": 2}}
    queue["capacity"] = [{"market": "on-demand"}]
    if machine.accelerator is not None and machine.accelerator.vendor is Vendor.NEURON:
        queue["image"] = {"profile": "ubuntu-24.04-neuron-dlami"}
    if name == "p3dn.24xlarge":  # the shipped image's kernel modules do not support its V100
        queue["image"] = {"id": OWN_IMAGE, "kernel_modules": "proprietary"}
    context = ValidationContext(region=region, base=base)
    return plan_cluster(parse_cluster({"queues": [queue]}, name="c", where="c", context=context), plan_base(base))


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchNetwork:
    """What launch templates of a zone name: ids of a subnet, a group, a key, an image and an instance profile."""

    subnet: str
    group: str
    key: str
    image: str
    profile: str


def laid(box: BoxStatus, region: str, zone: str) -> LaunchNetwork:
    ec2, key = boxes.client(box, "ec2", region), boxes.client(box, "kms", region).create_key()["KeyMetadata"]
    control.set_quota(box.dir, "L-F678F1CE", 20, region)  # VPCs: there is one for each zone
    vpc = ec2.create_vpc(CidrBlock="10.64.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.64.0.0/19", AvailabilityZoneId=zone)["Subnet"]
    name = f"nodes-{zone}"
    profile = boxes.client(box, "iam").create_instance_profile(InstanceProfileName=name)["InstanceProfile"]
    return LaunchNetwork(
        subnet=subnet["SubnetId"],
        group=ec2.create_security_group(GroupName=name, Description=name, VpcId=vpc)["GroupId"],
        key=key["Arn"],
        image=boxes.client(box, "ssm", region).get_parameter(Name="/corral-box/ami")["Parameter"]["Value"],
        profile=profile["Arn"],
    )


def built(name: str, launch_network: LaunchNetwork) -> Queues:
    """The component with the template of this type."""
    plan = planned(name)
    args = QueuesArgs(
        plan=plan,
        image_ids=dict.fromkeys(plan.images, launch_network.image),
        profile_arn=launch_network.profile,
        group=launch_network.group,
        key_arn=launch_network.key,
        subnets={home_of(name)[1]: launch_network.subnet},
        user_data="#cloud-config\n",
    )
    return Queues(name, args)


@pytest.fixture(scope="module")
def templates(session_box: BoxStatus) -> Recorder:
    """What the components of all types register, and a network in the box that it can name."""
    launch_network = cache(partial(laid, session_box))
    grounds = {name: launch_network(*home_of(name)) for name in RENTABLE}
    return record(lambda: [built(name, grounds[name]) for name in RENTABLE])


@pytest.fixture(scope="module")
def clients(session_box: BoxStatus) -> ClientCache:
    return ClientCache(str(session_box.url), client.environment(session_box.dir))


def over_the_wire(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs as the engine hands them to a provider: Pulumi's numbers are all floats."""
    return from_struct(to_struct(dict(inputs)))


def launched(name: str, templates: Recorder, clients: ClientCache) -> Mapping[str, Any]:
    """The instance that RunInstances creates from the type's template."""
    region, zone = home_of(name)
    cloud = RegionClients(clients, region)
    (offer,) = planned(name).queues[0].offers
    if offer.placement_group is not None:
        cloud.ec2.create_placement_group(GroupName=f"{name}-group-{offer.placement_group}", Strategy="cluster")
    given = over_the_wire(templates.of_type(TEMPLATE.token)[f"{name}-q-on-demand-{zone}"])
    inputs, faults = check_inputs(TEMPLATE, given, {}, Autonaming(name=name, seed=name.encode()), {})
    assert faults == []
    made = TEMPLATE.create(cloud, inputs)
    (instance,) = cloud.ec2.run_instances(LaunchTemplate={"LaunchTemplateId": made}, MinCount=1, MaxCount=1)[
        "Instances"
    ]
    cloud.ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    return dict(instance)


def beyond_the_cards(machine: InstanceType, positions: list[tuple[int, int, str]]) -> list[str]:
    """The interfaces (card, device, kind) beyond the type's cards."""
    cards = {card.index: card for card in machine.network_cards}
    crowded = [
        f"{number} interfaces on card {card}"
        for card, number in Counter(card for card, _, _ in positions).items()
        if number > cards[card].maximum_interfaces
    ]
    unknown = [f"{kind} on card {card}" for card, _, kind in positions if kind not in cards[card].interface_types]
    return [*crowded, *unknown]


@pytest.mark.parametrize("name", RENTABLE)
def test_the_template_of_a_type_launches_it_with_all_that_its_cards_allow(
    name: str, templates: Recorder, clients: ClientCache
) -> None:
    machine, instance = instance_types()[name], launched(name, templates, clients)
    positions = [
        (nic["Attachment"]["NetworkCardIndex"], nic["Attachment"]["DeviceIndex"], nic["InterfaceType"])
        for nic in instance["NetworkInterfaces"]
    ]
    efa = sum(kind.startswith("efa") for _, _, kind in positions)
    assert {
        "type": instance["InstanceType"],
        "first": min(positions),
        "efa": (efa, efa),
        "beyond": beyond_the_cards(machine, positions),
    } == {
        "type": name,
        "first": (0, 0, "interface"),
        "efa": (machine.efa_maximum, EFA_INTERFACES.get(name, efa)),
        "beyond": [],
    }


def test_the_listed_interface_counts_are_of_launched_types() -> None:
    assert sorted({*EFA_INTERFACES, *NODE_LINES} - {*RENTABLE}) == []


def node_lines(name: str) -> list[str]:
    """The lines of slurm.conf that name nodes."""
    return [line for line in slurm_conf(planned(name)).splitlines() if line.startswith("NodeName=")]


def facts(machine: InstanceType) -> dict[str, Any]:
    """The type's properties in slurm.conf, from the catalog's row, without 5 % of the memory, or 4 % and 320 MiB."""
    accelerator = machine.accelerator
    kinds = {Vendor.NVIDIA: "gpu", Vendor.NEURON: "neuron"}
    gres = f"{kinds[accelerator.vendor]}:{accelerator.name}:{accelerator.count}" if accelerator else None
    return {
        "NodeName": "q-[1-2]",
        "Sockets": machine.sockets,
        "CoresPerSocket": machine.cores // machine.sockets,
        "ThreadsPerCore": machine.threads_per_core,
        "RealMemory": min(machine.memory_mib * 95 // 100, machine.memory_mib * 96 // 100 - 320),
        **({"Gres": gres} if gres else {}),
        "Feature": f"{machine.name},efa" if machine.efa_maximum else machine.name,
        "Weight": 1,
        "State": "CLOUD",
    }


@pytest.mark.parametrize("name", RENTABLE)
def test_slurms_line_of_a_type_matches_its_row(name: str) -> None:
    (line,) = node_lines(name)
    assert dict(word.split("=", 1) for word in line.split(" ")) == {
        key: str(value) for key, value in facts(instance_types()[name]).items()
    }


@pytest.mark.parametrize("name", RENTABLE)
def test_slurms_processors_of_a_type_are_its_vcpus(name: str) -> None:
    node = planned(name).queues[0].node
    assert node.sockets * node.cores_per_socket * node.threads_per_core == instance_types()[name].vcpus


@pytest.mark.parametrize("name", NODE_LINES)
def test_slurms_line_of_a_well_known_type(name: str) -> None:
    assert node_lines(name) == [NODE_LINES[name]]
