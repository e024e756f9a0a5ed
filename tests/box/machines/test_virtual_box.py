"""A box whose instances are virtual machines, on a host whose tools are a script: a real daemon without QEMU."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from machine_fixtures import MachineBox, until
from virtual_boxes import create_tools, launch, prepared_with, running_virtual_box

from corral.box import client, control
from corral.box.client import BoxError
from corral.box.state.directory import StateDirectory
from corral.box.switches import Machines
from corral.cli import main

pytestmark = pytest.mark.box
# The loader of the tools: it logs the program with its arguments, and as QEMU it ends at once.
LOADER = """#!/bin/sh
echo "$*" >>{root}/calls
case "$*" in *qemu-system*) echo 'qemu: no machine here' >&2; exit 1 ;; esac
"""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The tools' root; `preparation.prepare` finds them there."""
    root = tmp_path_factory.mktemp("tools")
    create_tools(root, LOADER.format(root=root))
    with prepared_with(root):
        yield root


@pytest.fixture(scope="module")
def virtual_box(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineBox]:
    """A running box of virtual machines, which all tests of this module share."""
    with running_virtual_box(tmp_path_factory.mktemp("virtual") / "box") as running:
        yield running


def reason(virtual_box: MachineBox, instance_id: str) -> str:
    """The reason of an instance's end, once it has ended."""
    until(lambda: virtual_box.state(instance_id) == "terminated")
    return str(virtual_box.described(instance_id)["StateReason"]["Message"])


def test_type_that_is_too_large_ends_the_instance_with_the_limits(virtual_box: MachineBox) -> None:
    assert reason(virtual_box, launch(virtual_box, InstanceType="m7i.24xlarge")) == (
        "Server.InternalError: m7i.24xlarge has 96 vCPUs and 384 GiB; virtual machines of the box have up to 16 and"
        " 32 GiB - choose a smaller type, or `--machines namespace`"
    )


def test_qemu_that_does_not_start_ends_the_instance_with_its_last_line(virtual_box: MachineBox) -> None:
    assert reason(virtual_box, launch(virtual_box)) == (
        "Server.InternalError: QEMU does not start: qemu: no machine here"
    )


def test_disk_has_the_size_of_the_root_volume(virtual_box: MachineBox, tools: Path) -> None:
    mapping = [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 21}}]
    instance_id = launch(virtual_box, BlockDeviceMappings=mapping)
    reason(virtual_box, instance_id)
    disks = virtual_box.box.dir / "machines/disks"
    (line,) = [line for line in (tools / "calls").read_text().splitlines() if f"{instance_id}.new" in line]
    assert line.partition("qemu-img create ")[2] == (
        f"-q -f qcow2 -b /image/root.qcow2 -F qcow2 {disks}/{instance_id}.new/root.qcow2 21G"
    )


def test_a_mirror_error_counts_launches(virtual_box: MachineBox) -> None:
    control.inject_fault(virtual_box.box.dir, "mirror-error", hits_left="1")
    launch(virtual_box)
    assert control.faults(virtual_box.box.dir) == []


def test_environment_names_the_image_of_virtual_machines(virtual_box: MachineBox) -> None:
    assert client.environment(virtual_box.box.dir)["CORRAL_BOX_IMAGE"] == "debian-13"


@pytest.mark.parametrize(
    ("held", "wanted"),
    [(Machines.NAMESPACE, Machines.VM), (Machines.VM, Machines.NAMESPACE), (Machines.VM, Machines.NONE)],
)
def test_box_with_machines_of_another_kind_does_not_start(
    state_directory: Path, tools: Path, held: Machines, wanted: Machines
) -> None:
    home = StateDirectory(state_directory)
    (home.machines / "disks/i-0123").mkdir(parents=True)
    home.switches.write_text(json.dumps({"machines": held}))
    text = rf"are of --machines {held}, not {wanted} - run `corral down`, or choose another directory with --dir$"
    with pytest.raises(BoxError, match=text):
        client.start(state_directory, machines=wanted)


def test_box_without_machines_changes_their_kind(state_directory: Path, tools: Path) -> None:
    client.start(state_directory, machines=Machines.NAMESPACE)
    client.stop(state_directory)
    assert client.start(state_directory, machines=Machines.VM).switches.machines is Machines.VM


def test_start_prints_the_steps_of_the_preparation(
    state_directory: Path, tools: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["corral", "box", "start", "--machines", "vm", "--dir", str(state_directory)])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().err == "Fetch QEMU\n"
