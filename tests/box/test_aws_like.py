"""An aws-like box: what takes AWS some time takes the box some time, too.

`patient` boxes need AWS's own times, so that a test sees what holds meanwhile; `quick` ones are over within a second.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from vpc_fixtures import create_launch_network, described

import boxes
from corral.box import client
from corral.box.client import BoxStatus
from corral.box.delays import (
    CLEANING,
    DELAYS,
    GPU_TERMINATION,
    STALE_TAGS,
    TERMINATION,
    Delay,
    delay_lines,
    seconds,
)
from corral.box.ec2.launch_faults import cleaning_of
from corral.box.switches import Behaviour, Switches

Clients = Callable[..., Any]
IN_S = 60  # many times what anything here takes
PAGE = Path(__file__).parents[2] / "docs" / "fidelity.md"


@pytest.fixture(scope="module")
def patient_box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    with boxes.running_box(tmp_path_factory.mktemp("patient") / "state", speed=1) as status:
        yield status


@pytest.fixture(scope="module")
def quick_box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    with boxes.running_box(tmp_path_factory.mktemp("quick") / "state", speed=1000) as status:
        yield status


@pytest.fixture
def patient(patient_box: BoxStatus) -> Clients:
    """Clients of an aws-like box with AWS's times."""
    client.reset(patient_box.dir)
    return partial(boxes.client, patient_box)


@pytest.fixture
def quick(quick_box: BoxStatus) -> Clients:
    """Clients of an aws-like box that is 1000 times as fast as AWS."""
    client.reset(quick_box.dir)
    return partial(boxes.client, quick_box)


def until(found: Callable[[], Any]) -> Any:
    """What `found` returns, as soon as it is true."""
    deadline = time.monotonic() + IN_S
    while not (held := found()):
        assert time.monotonic() < deadline, f"nothing within {IN_S} s"
        time.sleep(0.05)
    return held


def state(aws: Clients, instance_id: str) -> str:
    return str(described(aws, instance_id)["State"]["Name"])


def in_a_reservation(aws: Clients) -> tuple[str, str]:
    """The ids of a reservation of one m7i.large and of the instance in it."""
    network = create_launch_network(aws)
    held = aws("ec2").create_capacity_reservation(
        InstanceType="m7i.large", InstancePlatform="Linux/UNIX", AvailabilityZone="us-east-1b", InstanceCount=1
    )["CapacityReservation"]["CapacityReservationId"]
    made = aws("ec2").run_instances(
        ImageId=network.image, SubnetId=network.subnet, InstanceType="m7i.large", MinCount=1, MaxCount=1
    )
    return str(held), str(made["Instances"][0]["InstanceId"])


def free_in(aws: Clients, reservation: str) -> int:
    (shown,) = aws("ec2").describe_capacity_reservations(CapacityReservationIds=[reservation])["CapacityReservations"]
    return int(shown["AvailableInstanceCount"])


def test_the_page_has_each_delay() -> None:
    section = PAGE.read_text().partition("\n## An aws-like box\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| ([^|]+?) \| ([\d.]+) s \|", section, re.MULTILINE))
    assert rows == {delay.text: f"{delay.aws_s:g}" for delay in DELAYS}


def test_a_speed_divides_each_delay() -> None:
    assert seconds(STALE_TAGS, Switches(behaviour=Behaviour.AWS_LIKE, speed=20)) == 60


def test_an_instant_box_has_no_delays() -> None:
    assert list(delay_lines(Switches())) == []


def test_an_instance_that_is_cleaned_uses_its_capacity_in_a_reservation(patient: Clients) -> None:
    reservation, instance_id = in_a_reservation(patient)
    patient("ec2").terminate_instances(InstanceIds=[instance_id])
    assert (state(patient, instance_id), free_in(patient, reservation)) == ("shutting-down", 0)


def test_a_cleaned_instance_frees_its_capacity_in_a_reservation(quick: Clients) -> None:
    reservation, instance_id = in_a_reservation(quick)
    quick("ec2").terminate_instances(InstanceIds=[instance_id])
    until(lambda: state(quick, instance_id) == "terminated")
    assert free_in(quick, reservation) == 1


@pytest.mark.parametrize(
    ("kind", "reservation", "delay"),
    [
        ("m7i.large", None, TERMINATION),
        ("m7i.large", "cr-1", CLEANING),
        ("p4d.24xlarge", None, GPU_TERMINATION),
        ("p5.48xlarge", "cr-1", GPU_TERMINATION),
    ],
)
def test_an_instance_is_cleaned(kind: str, reservation: str | None, delay: Delay) -> None:
    assert cleaning_of(kind, reservation) == delay


def tagged_volume(aws: Clients) -> str:
    """The id of a volume with a tag."""
    tags = [{"ResourceType": "volume", "Tags": [{"Key": "corral:cluster", "Value": "dev"}]}]
    made = aws("ec2").create_volume(AvailabilityZone="us-east-1b", Size=1, TagSpecifications=tags)
    return str(made["VolumeId"])


def listed(aws: Clients) -> list[str]:
    """The ids that the tagging API lists for the tag."""
    wanted = [{"Key": "corral:cluster", "Values": ["dev"]}]
    found = aws("resourcegroupstaggingapi").get_resources(TagFilters=wanted)["ResourceTagMappingList"]
    return [one["ResourceARN"].rpartition("/")[2] for one in found]


def test_a_deleted_volume_stays_listed_by_its_tags(patient: Clients) -> None:
    volume = tagged_volume(patient)
    patient("ec2").delete_volume(VolumeId=volume)
    assert listed(patient) == [volume]


def test_a_deleted_volume_is_listed_by_its_tags_for_some_time_only(quick: Clients) -> None:
    quick("ec2").delete_volume(VolumeId=tagged_volume(quick))
    assert until(lambda: not listed(quick))
