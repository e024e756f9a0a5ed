"""The instances that become machines, their properties and their metadata."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FIXTURE = Path(__file__).parents[1] / "desired_machines_fixture.py"


@pytest.fixture(scope="module")
def cloud() -> Any:
    """The output of the program."""
    return json.loads(subprocess.run([sys.executable, str(FIXTURE)], stdout=subprocess.PIPE, check=True).stdout)


def test_instances_that_run_the_boxs_image_and_have_user_data_become_machines(cloud: Any) -> None:
    assert sorted(cloud["wanted"]) == ["empty-profile", "lost-profile", "p5", "plain", "trainium", "working"]


def test_a_stopped_instance_retains_its_data_and_a_terminated_one_does_not(cloud: Any) -> None:
    assert ("stopped" in cloud["instances"], "terminated" in cloud["instances"], cloud["listed"]) == (
        True,
        False,
        ["terminated"],
    )


def test_the_root_disk_is_not_among_the_volumes(cloud: Any) -> None:
    assert cloud["wanted"]["plain"]["volumes"] == {"volume": 1}


@pytest.mark.parametrize(
    ("name", "devices"),
    [
        ("p5", [f"nvidia{number}" for number in range(8)]),
        ("trainium", [f"neuron{number}" for number in range(16)]),
        ("plain", []),
    ],
)
def test_the_devices_of_a_machine_are_the_accelerators_of_its_type(cloud: Any, name: str, devices: list[str]) -> None:
    assert cloud["wanted"][name]["devices"] == devices


def test_a_machine_has_the_network_address_and_name_of_its_instance(cloud: Any) -> None:
    found = cloud["wanted"]["plain"]
    assert (found["network"], found["address"], found["host_name"]) == (
        "10.64.0.0/16",
        "10.64.1.4",
        "ip-10-64-1-4.ec2.internal",
    )


@pytest.mark.parametrize(("name", "addresses"), [("plain", ["10.64.1.4/24"]), ("p5", ["10.64.1.9/24"])])
def test_interfaces_with_an_address_are_network_cards_of_their_subnets(
    cloud: Any, name: str, addresses: list[str]
) -> None:
    assert list(cloud["wanted"][name]["cards"].values()) == addresses


def test_only_the_private_zones_of_the_vpc_resolve_in_it(cloud: Any) -> None:
    own = {name: found for name, found in cloud["names"].items() if name.startswith("ip-")}
    assert {name: found for name, found in cloud["names"].items() if name not in own} == {
        "head.dev.corral.internal": ["10.64.1.5"],
        "two.dev.corral.internal": ["10.64.1.6", "10.64.1.7"],
    }


def test_a_machine_resolves_by_the_name_of_its_address(cloud: Any) -> None:
    assert cloud["names"]["ip-10-64-1-4.ec2.internal"] == ["10.64.1.4"]


def test_the_metadata_of_a_p5_have_one_interface_with_an_address_and_32_without(cloud: Any) -> None:
    cards = cloud["metadata"]["p5"]["interfaces"]
    shape = [(card["card"], card["device"], card["address"] is None) for card in cards]
    assert shape == [(0, 0, False), *((number, 1, True) for number in range(32))]


def test_the_metadata_of_an_interface_have_its_subnet_and_its_groups(cloud: Any) -> None:
    cards = cloud["metadata"]["p5"]["interfaces"]
    shape = {(card["subnet_network"], *card["groups"].values()) for card in cards}
    assert shape == {("10.64.1.0/24", "nodes")}


def test_metadata_has_all_ranges_of_the_vpc(cloud: Any) -> None:
    assert cloud["metadata"]["plain"]["vpc_networks"] == ["10.64.0.0/16", "10.65.0.0/16"]


def test_metadata_has_the_reservation_of_the_launch(cloud: Any) -> None:
    assert cloud["metadata"]["plain"]["reservation_id"] == cloud["reservation"]


def test_metadata_has_tags_if_the_launch_requests_them(cloud: Any) -> None:
    assert (cloud["metadata"]["plain"]["tags"], cloud["metadata"]["working"]["tags"]) == (None, {"Name": "working"})


def test_the_credentials_are_those_of_the_role_in_the_profile(cloud: Any) -> None:
    assert cloud["metadata"]["working"]["credentials"]["role"] == "working-role"


@pytest.mark.parametrize("name", ["plain", "empty-profile", "lost-profile"])
def test_without_a_role_there_are_no_credentials(cloud: Any, name: str) -> None:
    assert cloud["metadata"][name]["credentials"] is None


def test_metadata_has_the_user_data_unchanged(cloud: Any) -> None:
    assert cloud["metadata"]["plain"]["user_data"] == "IyEvYmluL3NoCg=="  # shown in base64: #!/bin/sh
