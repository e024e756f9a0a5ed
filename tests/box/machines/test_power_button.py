"""How virtual machines of a box end: by the power button or at once. QEMU is a program with its monitor alone."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from machine_fixtures import MachineBox, until
from vpc_fixtures import create_launch_network

import boxes
from corral.box import client, control
from corral.box.switches import Machines
from corral.box.vm import preparation
from corral.catalog.aws.images import VM_PROFILE, find_image_profile

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


def write_support(tools: Path, record: Path, report: Callable[[str], None]) -> None:
    """Do as `preparation.prepare`, with these tools and without an image."""
    record.write_text(json.dumps({"tools": str(tools), "image": str(tools / "image"), "accelerator": "tcg"}))


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tools' root. A directory there for each machine has the commands of its monitor."""
    root = tmp_path_factory.mktemp("tools")
    for name in ("qemu-img", "qemu-system-x86_64", "ganesha.nfsd"):
        (root / "usr/bin").mkdir(parents=True, exist_ok=True)
        (root / "usr/bin" / name).touch()
    (root / "lib64").mkdir()
    loader = root / "lib64/ld-linux-x86-64.so.2"
    loader.write_text(LOADER.format(root=root, python=sys.executable, qemu=QEMU))
    loader.chmod(0o755)
    root.chmod(0o777)  # QEMU of the host's root runs as another user
    return root


@pytest.fixture(scope="module")
def virtual_box(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineBox]:
    """A running box of virtual machines, which all tests of this module share."""
    directory = tmp_path_factory.mktemp("virtual") / "box"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparation, "prepare", partial(write_support, tools))
        box = client.start(directory, machines=Machines.VM)
    try:
        yield MachineBox(box=box, launch_network=create_launch_network(partial(boxes.client, box)))
    finally:
        client.stop(directory)


@pytest.fixture
def machine(virtual_box: MachineBox, tools: Path) -> str:
    """A new machine that boots."""
    parameter = find_image_profile(VM_PROFILE).image_parameter
    image = virtual_box.aws("ssm").get_parameter(Name=parameter)["Parameter"]["Value"]
    launched = virtual_box.launch("#!/bin/sh\n", ImageId=image)
    assert until(lambda: "cont" in monitored(tools, launched))
    assert until(lambda: virtual_box.state(launched) == "running")
    return launched


def monitored(tools: Path, machine: str) -> list[str]:
    """The commands that a machine's monitor got."""
    log = tools / machine / "commands"
    return [json.loads(line)["execute"] for line in log.read_text().splitlines()] if log.exists() else []


def is_pressed(tools: Path, machine: str) -> bool:
    return "system_powerdown" in monitored(tools, machine)


def power_off(tools: Path, machine: str) -> None:
    """End a machine's QEMU, as its system does at the end of a shutdown."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:  # it has ended meanwhile
                continue
            if str(tools / machine).encode() in words:
                os.kill(int(entry.name), signal.SIGKILL)


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


def test_reboot_cuts_the_power_and_starts_the_machine_again(virtual_box: MachineBox, tools: Path, machine: str) -> None:
    virtual_box.aws("ec2").reboot_instances(InstanceIds=[machine])
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
    until(lambda: any(is_stopped(entry, tools / machine) for entry in Path("/proc").iterdir()))
    virtual_box.aws("ec2").terminate_instances(InstanceIds=[machine])
    ended = until(lambda: virtual_box.state(machine) == "terminated")
    assert (ended, is_pressed(tools, machine)) == (True, False)


def is_stopped(process: Path, directory: Path) -> bool:
    """Whether this is the stopped QEMU of the machine with this directory."""
    try:
        return (
            str(directory).encode() in (process / "cmdline").read_bytes().split(b"\0")
            and (process / "stat").read_text().rpartition(")")[2].split()[0] == "T"
        )
    except OSError:  # it has ended meanwhile, or is no process
        return False
