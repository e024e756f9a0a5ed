"""Unit tests with moto's mock_aws: what boto3 reads back is what plan and rendered text say.

The components' children are recorded with Pulumi's mocks, then made in moto, in this process, with the ids it gave.
tests/life shows in the box what plain moto lacks (placement groups, EFA on instances, Lustre's states).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import boto3
import pulumi
import pytest
from moto import mock_aws

from corral import render
from corral.box.provider import lifecycle
from corral.box.provider.aws_clients import ClientCache, RegionClients
from corral.box.provider.configuration import ProviderSettings
from corral.box.provider.property_validation import Autonaming, check_inputs
from corral.box.provider.protobuf_values import ASSET, SIGNATURE
from corral.box.provider.tables import RESOURCES
from corral.components.files import Archive, Files, FilesArgs
from corral.components.pins_and_alarms import Pins, PinsArgs
from corral.components.queues import Queues, QueuesArgs
from corral.components.vpc import Network, NetworkArgs
from corral.model.deployed import BootFacts
from corral.model.enums import Role
from environments import dev_base, dev_cluster
from recorded import Recorder, record
from render.plans import PUBLIC_KEY

OFFERS = ("train-spot-use1-az1", "train-spot-use1-az2", "train-on-demand-use1-az1", "train-on-demand-use1-az2")
FACTS = BootFacts(
    cluster="dev",
    region="us-east-1",
    bucket="corral-dev",
    prefix="clusters/dev",
    bundle_key="clusters/dev/agent/x.tar.gz",
    bundle_sha256="0" * 64,
    library_key="clusters/dev/library/x.tar.gz",
    library_sha256="0" * 64,
    public_key=PUBLIC_KEY,
)


class InProcess(ClientCache):
    """boto3 clients without an endpoint: mock_aws answers them."""

    account = "123456789012"  # not asked of STS: where another test imported the box, STS knows the box's keys only

    def __init__(self) -> None:
        super().__init__("")

    def _create(self, service: str, region: str) -> Any:
        return boto3.client(service, region_name=region)


@dataclass
class Made:
    """What was recorded, made in moto: the real id of each child by its name."""

    ids: dict[str, str] = field(default_factory=dict)

    def make(self, recorder: Recorder, *tokens: str) -> None:
        """Makes the children of these types, in the order in which they were registered."""
        cloud, settings = RegionClients(InProcess(), "us-east-1"), ProviderSettings(region="us-east-1")
        for name, (token, inputs) in recorder.resources.items():
            if token in tokens:
                naming = Autonaming(name=name, seed=b"\0\0\0\0")
                wanted, faults = check_inputs(RESOURCES[token], self._with_ids(inputs), {}, naming, {})
                assert faults == []
                self.ids[name], _ = lifecycle.create(RESOURCES[token], cloud, settings, wanted)

    def _with_ids(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: self._with_ids(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._with_ids(item) for item in value]
        if isinstance(value, pulumi.FileAsset):
            return {SIGNATURE: ASSET, "path": value.path}
        if isinstance(value, float) and value.is_integer():
            return int(value)  # the SDK sends every number as a float
        return self.ids.get(str(value).removesuffix("-id"), value) if isinstance(value, str) else value


@pytest.fixture(scope="module")
def made() -> Iterator[Made]:
    patch = pytest.MonkeyPatch()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        patch.setenv(name, "testing")
    with mock_aws():
        made = Made()
        made.make(
            record(lambda: Network("network", NetworkArgs(plan=dev_base(), public=dev_base().public))),
            "aws:ec2/vpc:Vpc",
            "aws:ec2/subnet:Subnet",
            "aws:ec2/subnetCidrReservation:SubnetCidrReservation",
        )
        made.make(record(lambda: Queues("queues", queues(made))), "aws:ec2/launchTemplate:LaunchTemplate")
        made.make(record(lambda: Pins("pins", PINS)), "aws:ssm/parameter:Parameter")
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="corral-dev")
        made.make(record(lambda: Files("files", files())), "aws:s3/bucketObjectv2:BucketObjectv2")
        yield made
    patch.undo()


PINS = PinsArgs(plan=dev_cluster(), image_ids={"image": "ami-0123456789abcdef0"}, ends_at="2026-01-01T00:00:00Z")


def queues(made: Made) -> QueuesArgs:
    """The queues of `dev` in the subnets that were made."""
    return QueuesArgs(
        plan=dev_cluster(),
        image_ids={"image": "ami-0123456789abcdef0"},
        profile_arn="arn:aws:iam::123456789012:instance-profile/compute",
        group="sg-0123456789abcdef0",
        key_arn="arn:aws:kms:us-east-1:123456789012:key/k",
        subnets={zone: made.ids[f"network-private-{zone}"] for zone in ("use1-az1", "use1-az2")},
        user_data=render.user_data(dev_cluster(), Role.COMPUTE, FACTS),
    )


def files() -> FilesArgs:
    """The files of `dev`."""
    texts = render.cluster_files(dev_cluster())
    agent, library = Archive(name="agent", content=b"x"), Archive(name="library", content=b"y")
    return FilesArgs(
        plan=dev_cluster(),
        bucket="corral-dev",
        texts=texts,
        agent=agent,
        library=library,
        sign=lambda *_: "manifest",
    )


def ec2() -> Any:
    return boto3.client("ec2", region_name="us-east-1")


def template(made: Made, offer: str) -> Any:
    """The data of the launch template of this offer."""
    answer = ec2().describe_launch_template_versions(
        LaunchTemplateId=made.ids[f"queues-{offer}"], Versions=["$Default"]
    )
    return answer["LaunchTemplateVersions"][0]["LaunchTemplateData"]


def test_private_subnets_read_back_are_those_of_the_plan(made: Made) -> None:
    ids = [made.ids[f"network-private-{zone.zone_id}"] for zone in dev_base().zones]
    found = {s["AvailabilityZoneId"]: s["CidrBlock"] for s in ec2().describe_subnets(SubnetIds=ids)["Subnets"]}
    assert found == {"use1-az1": "10.64.0.0/19", "use1-az2": "10.64.32.0/19"}


def test_the_heads_address_in_slurm_conf_lies_in_the_reservation_read_back(made: Made) -> None:
    from ipaddress import ip_network

    subnet = made.ids["network-private-use1-az1"]
    (kept,) = ec2().get_subnet_cidr_reservations(SubnetId=subnet)["SubnetIpv4CidrReservations"]
    (line,) = [
        line for line in render.cluster_files(dev_cluster())["slurm/slurm.conf"].splitlines() if "SlurmctldHost" in line
    ]
    assert (line, dev_cluster().head.address in ip_network(kept["Cidr"])) == (
        "SlurmctldHost=dev-head(10.64.0.23)",
        True,
    )


@pytest.mark.parametrize("offer", OFFERS)
def test_user_data_read_back_from_a_template_is_the_rendered_text(made: Made, offer: str) -> None:
    text = base64.b64decode(template(made, offer)["UserData"]).decode()
    assert text == render.user_data(dev_cluster(), Role.COMPUTE, FACTS)


def test_interfaces_read_back_from_the_template_stand_in_the_subnet_read_back(made: Made) -> None:
    nics = template(made, "train-on-demand-use1-az2")["NetworkInterfaces"]
    assert [(n["NetworkCardIndex"], n["DeviceIndex"], n["InterfaceType"], n["SubnetId"]) for n in nics] == [
        (card, device, kind, made.ids["network-private-use1-az2"])
        for card, device, kind in (
            (0, 0, "interface"),
            (0, 1, "efa-only"),
            (1, 0, "efa-only"),
            (2, 0, "efa-only"),
            (3, 0, "efa-only"),
        )
    ]


def test_the_gpus_of_slurm_conf_are_those_of_the_templates_type(made: Made) -> None:
    kind = template(made, OFFERS[0])["InstanceType"]
    (gpus,) = ec2().describe_instance_types(InstanceTypes=[kind])["InstanceTypes"][0]["GpuInfo"]["Gpus"]
    lines = render.cluster_files(dev_cluster())["slurm/slurm.conf"].splitlines()
    (node,) = [line for line in lines if line.startswith("NodeName=")]
    assert f"Gres=gpu:{gpus['Name'].lower()}:{gpus['Count']}" in node


def test_the_image_parameter_read_back_is_the_templates_image(made: Made) -> None:
    value = boto3.client("ssm", region_name="us-east-1").get_parameter(Name="/corral/dev/image")["Parameter"]["Value"]
    assert value == template(made, OFFERS[0])["ImageId"] == "ami-0123456789abcdef0"


@pytest.mark.parametrize("path", sorted(render.cluster_files(dev_cluster())))
def test_an_object_read_back_is_the_rendered_file(made: Made, path: str) -> None:
    key = f"clusters/dev/{path}"
    body = boto3.client("s3", region_name="us-east-1").get_object(Bucket="corral-dev", Key=key)["Body"].read()
    assert body.decode() == render.cluster_files(dev_cluster())[path]
