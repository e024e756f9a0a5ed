"""How virtual machines of a box end: by the power button or at once. QEMU is a program with its monitor alone."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from machine_fixtures import MachineBox, until
from virtual_boxes import create_tools, launch, prepared_with, running_virtual_box

from corral.box import control

pytestmark = pytest.mark.box
QEMU = Path(__file__).parents[1] / "qemu_fixture.py"
# The loader of the tools. Of QEMU's arguments it passes the name, the tap and the monitor.
LOADER = """#!/bin/sh
case "$*" in *qemu-system*) ;; *) exit 0 ;; esac
for word; do
  case "$previous" in -name) name=$word ;; esac
  case "$word" in unix:*) monitor=${{word#unix:}} ;; tap,*) link=${{word#*ifname=}} ;; esac
  previous=$word
done
mkdir -p {root}/$name
exec {python} {qemu} {root}/$name ${{link%%,*}} ${{monitor%%,*}}
"""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The tools' root. A directory there for each machine has the commands of its monitor."""
    root = tmp_path_factory.mktemp("tools")
    create_tools(root, LOADER.format(root=root, python=sys.executable, qemu=QEMU))
    with prepared_with(root):
        yield root


@pytest.fixture(scope="module")
def virtual_box(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineBox]:
    """A running box of virtual machines, which all tests of this module share."""
    with running_virtual_box(tmp_path_factory.mktemp("virtual") / "box") as running:
        yield running


@pytest.fixture
def machine(virtual_box: MachineBox, tools: Path) -> str:
    """A new machine that boots."""
    launched = launch(virtual_box)
    assert until(lambda: "cont" in monitored(tools, launched))
    assert until(lambda: virtual_box.state(launched) == "running")
    return launched


def monitored(tools: Path, machine: str) -> list[str]:
    """The commands that a machine's monitor got."""
    log = tools / machine / "commands"
    return [json.loads(line)["execute"] for line in log.read_text().splitlines()] if log.exists() else []


def is_pressed(tools: Path, machine: str) -> bool:
    return "system_powerdown" in monitored(tools, machine)


def qemus(tools: Path, machine: str) -> Iterator[Path]:
    """The directory in /proc of a machine's QEMU, while it runs."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if str(tools / machine).encode() in (process / "cmdline").read_bytes().split(b"\0"):
                yield process


def power_off(tools: Path, machine: str) -> None:
    """End a machine's QEMU, as its system does at the end of a shutdown."""
    for process in qemus(tools, machine):
        os.kill(int(process.name), signal.SIGKILL)


def is_stopped(process: Path) -> bool:
    return (process / "stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.mark.parametrize(
    ("call", "meanwhile", "then"),
    [("terminate_instances", "shutting-down", "terminated"), ("stop_instances", "stopping", "stopped")],
)
def test_instance_ends_once_its_system_has_shut_down(
    virtual_box: MachineBox, tools: Path, machine: str, call: str, meanwhile: str, then: str
) -> None:
    getattr(virtual_box.aws("ec2"), call)(InstanceIds=[machine])
    pressed = until(lambda: is_pressed(tools, machine))
    shown = virtual_box.state(machine)
    power_off(tools, machine)
    assert (pressed, shown, until(lambda: virtual_box.state(machine) == then)) == (True, meanwhile, True)


def test_volume_stays_until_the_system_has_shut_down(virtual_box: MachineBox, tools: Path, machine: str) -> None:
    ec2 = virtual_box.aws("ec2")
    zone = virtual_box.described(machine)["Placement"]["AvailabilityZone"]
    volume = ec2.create_volume(Size=1, AvailabilityZone=zone)["VolumeId"]
    ec2.attach_volume(VolumeId=volume, InstanceId=machine, Device="/dev/sdf")
    until(lambda: "device_add" in monitored(tools, machine))
    ec2.terminate_instances(InstanceIds=[machine])
    until(lambda: is_pressed(tools, machine))
    ec2.create_tags(Resources=[volume], Tags=[{"Key": "any", "Value": "change"}])
    assert "device_del" not in monitored(tools, machine)
    power_off(tools, machine)


def test_reboot_presses_the_power_button_and_starts_the_machine_again(
    virtual_box: MachineBox, tools: Path, machine: str
) -> None:
    virtual_box.aws("ec2").reboot_instances(InstanceIds=[machine])
    until(lambda: is_pressed(tools, machine))
    power_off(tools, machine)
    until(lambda: monitored(tools, machine).count("cont") == 2)
    assert (monitored(tools, machine).count("cont"), virtual_box.state(machine)) == (2, "running")


@pytest.mark.parametrize("frozen", [False, True])
def test_killed_machine_ends_at_once(virtual_box: MachineBox, tools: Path, machine: str, frozen: bool) -> None:
    if frozen:
        control.inject_fault(virtual_box.box.dir, "freeze", target=machine)
    control.inject_fault(virtual_box.box.dir, "kill", target=machine)
    ended = until(lambda: not virtual_box.runs(machine))
    assert (ended, is_pressed(tools, machine)) == (True, False)


def test_frozen_machine_that_is_terminated_ends_at_once(virtual_box: MachineBox, tools: Path, machine: str) -> None:
    control.inject_fault(virtual_box.box.dir, "freeze", target=machine)
    until(lambda: any(map(is_stopped, qemus(tools, machine))))
    virtual_box.aws("ec2").terminate_instances(InstanceIds=[machine])
    ended = until(lambda: virtual_box.state(machine) == "terminated")
    assert (ended, is_pressed(tools, machine)) == (True, False)
