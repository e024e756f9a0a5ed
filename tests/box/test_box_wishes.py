"""Which instances become machines, with what, and what they are told of themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

WORLD = Path(__file__).with_name("wishes_world.py")


@pytest.fixture(scope="module")
def world() -> Any:
    """What the program made of its cloud."""
    return json.loads(subprocess.run([sys.executable, str(WORLD)], stdout=subprocess.PIPE, check=True).stdout)


def test_instances_that_run_the_boxs_image_and_have_user_data_become_machines(world: Any) -> None:
    assert sorted(world["wanted"]) == ["empty-profile", "lost-profile", "p5", "plain", "trainium", "working"]


def test_what_an_instance_that_was_stopped_has_is_kept_and_what_an_ended_one_had_is_not(world: Any) -> None:
    assert ("stopped" in world["instances"], "terminated" in world["instances"], world["listed"]) == (
        True,
        False,
        ["terminated"],
    )


def test_the_root_disk_is_none_of_the_volumes(world: Any) -> None:
    assert world["wanted"]["plain"]["volumes"] == ["volume"]


@pytest.mark.parametrize(
    ("name", "devices"),
    [
        ("p5", [f"nvidia{number}" for number in range(8)]),
        ("trainium", [f"neuron{number}" for number in range(16)]),
        ("plain", []),
    ],
)
def test_the_devices_of_a_machine_are_the_accelerators_of_its_type(world: Any, name: str, devices: list[str]) -> None:
    assert world["wanted"][name]["devices"] == devices


def test_a_machine_has_the_network_address_and_name_of_its_instance(world: Any) -> None:
    found = world["wanted"]["plain"]
    assert (found["network"], found["address"], found["host_name"]) == (
        "10.64.0.0/16",
        "10.64.1.4",
        "ip-10-64-1-4.ec2.internal",
    )


def test_only_the_private_zones_of_the_vpc_are_known_in_it(world: Any) -> None:
    own = {name: found for name, found in world["names"].items() if name.startswith("ip-")}
    assert {name: found for name, found in world["names"].items() if name not in own} == {
        "head.dev.corral.internal": ["10.64.1.5"],
        "two.dev.corral.internal": ["10.64.1.6", "10.64.1.7"],
    }


def test_a_machine_is_known_by_the_name_of_its_address(world: Any) -> None:
    assert world["names"]["ip-10-64-1-4.ec2.internal"] == ["10.64.1.4"]


def test_a_p5_is_told_of_one_interface_with_an_address_and_32_without(world: Any) -> None:
    cards = world["told"]["p5"]["cards"]
    shape = [(card["card"], card["device"], card["address"] is None) for card in cards]
    assert shape == [(0, 0, False), *((number, 1, True) for number in range(32))]


def test_tags_are_told_where_the_launch_asked_for_it(world: Any) -> None:
    assert (world["told"]["plain"]["tags"], world["told"]["working"]["tags"]) == (None, {"Name": "working"})


def test_the_credentials_are_those_of_the_role_in_the_profile(world: Any) -> None:
    assert world["told"]["working"]["credentials"]["role"] == "working-role"


@pytest.mark.parametrize("name", ["plain", "empty-profile", "lost-profile"])
def test_without_a_role_there_are_no_credentials(world: Any, name: str) -> None:
    assert world["told"][name]["credentials"] is None


def test_user_data_are_told_as_they_were_given(world: Any) -> None:
    assert world["told"]["plain"]["user_data"] == "IyEvYmluL3NoCg=="  # shown in base64: #!/bin/sh
