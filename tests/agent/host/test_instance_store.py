"""Instance store disks become one file system, from any state."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from agent.transcripts import Disks, Transcript
from corral.agent.host.base import HostError, run
from corral.agent.host.instance_store import (
    ARRAY,
    BlockDevice,
    instance_store_disks,
    mount_instance_store,
    next_command,
    top_devices,
)

ONE = ("/dev/nvme1n1",)
TWO = ("/dev/nvme1n1", "/dev/nvme2n1")
LOOKS = frozenset({"lsblk", "udevadm", "wipefs"})
MKFS = ("mkfs.xfs", "-q", "-f", "-K", "-L", "corral-nvme")


def disk(name: str, file_system: str = "", *mounts: str) -> BlockDevice:
    return BlockDevice(name=name, disk=True, file_system=file_system, mounts=mounts)


def made(name: str, file_system: str = "", *mounts: str) -> BlockDevice:
    return BlockDevice(name=name, disk=False, file_system=file_system, mounts=mounts)


@pytest.mark.parametrize(
    ("disks", "ends", "step"),
    [
        (
            TWO,
            [disk(name) for name in TWO],
            ("mdadm", "--create", ARRAY, "--run", "--homehost=any", "--level=0", "--raid-devices=2", *TWO),
        ),
        (TWO, [disk(name, "linux_raid_member") for name in TWO], ("mdadm", "--assemble", ARRAY, *TWO)),
        (
            TWO,
            [disk(TWO[0], "linux_raid_member"), disk(TWO[1])],
            ("mdadm", "--create", ARRAY, "--run", "--homehost=any", "--level=0", "--raid-devices=2", *TWO),
        ),
        (TWO, [made("/dev/md127")], (*MKFS, "/dev/md127")),
        (TWO, [made("/dev/md127", "xfs")], ("mount", "-o", "noatime", "/dev/md127", "/nvme")),
        (TWO, [made("/dev/md127", "xfs", "/nvme")], None),
        (ONE, [disk(ONE[0])], (*MKFS, ONE[0])),
        (ONE, [disk(ONE[0], "LVM2_member")], (*MKFS, ONE[0])),
        (ONE, [disk(ONE[0], "ext4")], ("mount", "-o", "noatime", ONE[0], "/nvme")),
        (ONE, [disk(ONE[0], "xfs", "/nvme")], None),
        (
            TWO,
            [made("/dev/mapper/vg.01-lv_ephemeral", "ext4", "/opt/dlami/nvme")],
            ("mount", "--bind", "/opt/dlami/nvme", "/nvme"),
        ),
        (TWO, [made("/dev/mapper/vg.01-lv_ephemeral", "ext4", "/nvme", "/opt/dlami/nvme")], None),
        (
            TWO,
            [made("/dev/mapper/vg.01-lv_ephemeral", "ext4")],
            ("mount", "-o", "noatime", "/dev/mapper/vg.01-lv_ephemeral", "/nvme"),
        ),
    ],
    ids=[
        "blank",
        "not-assembled",
        "one-is-new",
        "array",
        "array-with-file-system",
        "array-mounted",
        "one-blank",
        "one-with-a-rest",
        "one-with-file-system",
        "one-mounted",
        "taken-by-the-image",
        "taken-and-mounted-twice",
        "taken-and-not-mounted",
    ],
)
def test_the_next_command(disks: tuple[str, ...], ends: list[BlockDevice], step: tuple[str, ...] | None) -> None:
    assert next_command(disks, ends, "/nvme") == step


def test_disks_that_are_used_for_something_else_are_left_alone() -> None:
    with pytest.raises(
        HostError, match=r"at /nvme: its disks are in use as /dev/nvme1n1 \(ext4\), /dev/nvme2n1 \(empty\)$"
    ):
        next_command(TWO, [disk(TWO[0], "ext4", "/data"), disk(TWO[1])], "/nvme")


def test_an_array_is_listed_once_although_it_is_below_each_of_its_disks() -> None:
    array = {"name": "/dev/md127", "type": "raid0", "mountpoints": [None]}
    member = {"type": "disk", "mountpoints": [None], "children": [array]}
    seen = top_devices({"blockdevices": [{"name": name, **member} for name in TWO]})
    assert seen == (made("/dev/md127"),)


@pytest.mark.skipif(shutil.which("lsblk") is None, reason="lsblk is missing: apt install util-linux")
def test_the_output_of_this_systems_lsblk_is_parsed() -> None:
    printed = run(("lsblk", "--json", "--paths", "--output=NAME,TYPE,MOUNTPOINTS"))
    assert all(leaf.name.startswith("/dev/") for leaf in top_devices(json.loads(printed)))


def test_a_disk_with_two_links_is_one_disk(tmp_path: Path) -> None:
    Disks(names=TWO).lay(tmp_path)
    assert instance_store_disks(tmp_path) == TWO


def test_ebs_volumes_are_not_instance_store_disks(tmp_path: Path) -> None:
    links = tmp_path / "dev/disk/by-id"
    links.mkdir(parents=True)
    (links / "nvme-Amazon_Elastic_Block_Store_vol1").touch()
    assert instance_store_disks(tmp_path) == ()


def test_missing_disks_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"^no instance store disk for /nvme: /dev/disk/by-id/nvme-"):
        mount_instance_store(Transcript(root=tmp_path), Path("/nvme"), tmp_path)


def test_everybody_may_write_where_they_are_mounted(tmp_path: Path) -> None:
    disks = Disks(names=ONE)
    disks.lay(tmp_path)
    transcript = Transcript(root=tmp_path, answers=disks.answers(), reads=LOOKS)
    mount_instance_store(transcript, Path("/nvme"), tmp_path)
    assert transcript.lines == [
        "$ mkdir --parents /nvme",
        "$ mkfs.xfs -q -f -K -L corral-nvme /dev/nvme1n1",
        "$ mount -o noatime /dev/nvme1n1 /nvme",
        "$ chmod 1777 /nvme",
    ]


def test_disks_that_are_mounted_are_left_as_they_are(tmp_path: Path) -> None:
    disks = Disks(names=ONE, file_systems={ONE[0]: "xfs"}, mounts={ONE[0]: ["/nvme"]})
    disks.lay(tmp_path)
    transcript = Transcript(root=tmp_path, answers=disks.answers(), reads=LOOKS)
    mount_instance_store(transcript, Path("/nvme"), tmp_path)
    assert transcript.lines == ["$ mkdir --parents /nvme", "$ chmod 1777 /nvme"]


def test_signatures_are_read_from_the_disk_because_udev_may_not_know(tmp_path: Path) -> None:
    disks = Disks(names=ONE, file_systems={ONE[0]: "xfs\n"})
    disks.lay(tmp_path)
    transcript = Transcript(root=tmp_path, answers=disks.answers())
    mount_instance_store(transcript, Path("/nvme"), tmp_path)
    assert transcript.lines[2:5] == [
        "$ lsblk --json --paths --output=NAME,TYPE,MOUNTPOINTS /dev/nvme1n1",
        "$ wipefs --noheadings --output=TYPE /dev/nvme1n1",
        "$ mount -o noatime /dev/nvme1n1 /nvme",
    ]


def test_a_store_that_never_mounts_is_an_error(tmp_path: Path) -> None:
    Disks(names=ONE).lay(tmp_path)
    blank = Disks(names=ONE)
    transcript = Transcript(root=tmp_path, answers={"lsblk": blank.answer}, reads=LOOKS)
    with pytest.raises(HostError, match=r"^the instance store is not mounted at /nvme after 8 steps$"):
        mount_instance_store(transcript, Path("/nvme"), tmp_path)
