"""A machine's own disks become one file system, from whatever they are found as."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from agent.transcripts import Disks, Transcript
from corral.agent.hosts import HostError, run
from corral.agent.nvme import ARRAY, End, ends_of, mount_own_disks, next_step, own_disks

ONE = ("/dev/nvme1n1",)
TWO = ("/dev/nvme1n1", "/dev/nvme2n1")
LOOKS = frozenset({"lsblk", "udevadm", "wipefs"})
MKFS = ("mkfs.xfs", "-q", "-f", "-K", "-L", "corral-nvme")


def disk(name: str, file_system: str = "", *mounts: str) -> End:
    return End(name=name, disk=True, file_system=file_system, mounts=mounts)


def made(name: str, file_system: str = "", *mounts: str) -> End:
    return End(name=name, disk=False, file_system=file_system, mounts=mounts)


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
def test_the_next_step(disks: tuple[str, ...], ends: list[End], step: tuple[str, ...] | None) -> None:
    assert next_step(disks, ends, "/nvme") == step


def test_disks_that_are_used_for_something_else_are_left_alone() -> None:
    with pytest.raises(HostError, match=r"at /nvme, they are used as /dev/nvme1n1 \(ext4\), /dev/nvme2n1 \(empty\)$"):
        next_step(TWO, [disk(TWO[0], "ext4", "/data"), disk(TWO[1])], "/nvme")


def test_one_array_is_seen_once_though_it_is_below_each_of_its_disks() -> None:
    array = {"name": "/dev/md127", "type": "raid0", "mountpoints": [None]}
    member = {"type": "disk", "mountpoints": [None], "children": [array]}
    seen = ends_of({"blockdevices": [{"name": name, **member} for name in TWO]})
    assert seen == (made("/dev/md127"),)


@pytest.mark.skipif(shutil.which("lsblk") is None, reason="lsblk is missing: apt install util-linux")
def test_the_lsblk_of_this_system_is_understood() -> None:
    printed = run(("lsblk", "--json", "--paths", "--output=NAME,TYPE,MOUNTPOINTS"))
    assert all(end.name.startswith("/dev/") for end in ends_of(json.loads(printed)))


def test_a_disk_with_two_links_is_one_disk(tmp_path: Path) -> None:
    Disks(names=TWO).lay(tmp_path)
    assert own_disks(tmp_path) == TWO


def test_ebs_volumes_are_nobodys_own_disks(tmp_path: Path) -> None:
    links = tmp_path / "dev/disk/by-id"
    links.mkdir(parents=True)
    (links / "nvme-Amazon_Elastic_Block_Store_vol1").touch()
    assert own_disks(tmp_path) == ()


def test_a_machine_without_the_disks_that_its_type_has_is_told(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"^no disk of the machine's own is there for /nvme: no /dev/disk/by-id/nvme-"):
        mount_own_disks(Transcript(root=tmp_path), Path("/nvme"), tmp_path)


def test_everybody_may_write_where_they_are_mounted(tmp_path: Path) -> None:
    disks = Disks(names=ONE)
    disks.lay(tmp_path)
    said = Transcript(root=tmp_path, answers=disks.answers(), reads=LOOKS)
    mount_own_disks(said, Path("/nvme"), tmp_path)
    assert said.lines == [
        "$ mkdir --parents /nvme",
        "$ mkfs.xfs -q -f -K -L corral-nvme /dev/nvme1n1",
        "$ mount -o noatime /dev/nvme1n1 /nvme",
        "$ chmod 1777 /nvme",
    ]


def test_disks_that_are_mounted_are_left_as_they_are(tmp_path: Path) -> None:
    disks = Disks(names=ONE, file_systems={ONE[0]: "xfs"}, mounts={ONE[0]: ["/nvme"]})
    disks.lay(tmp_path)
    said = Transcript(root=tmp_path, answers=disks.answers(), reads=LOOKS)
    mount_own_disks(said, Path("/nvme"), tmp_path)
    assert said.lines == ["$ mkdir --parents /nvme", "$ chmod 1777 /nvme"]


def test_what_is_written_on_a_disk_is_read_from_it_since_udev_may_not_know(tmp_path: Path) -> None:
    disks = Disks(names=ONE, file_systems={ONE[0]: "xfs\n"})
    disks.lay(tmp_path)
    said = Transcript(root=tmp_path, answers=disks.answers())
    mount_own_disks(said, Path("/nvme"), tmp_path)
    assert said.lines[2:5] == [
        "$ lsblk --json --paths --output=NAME,TYPE,MOUNTPOINTS /dev/nvme1n1",
        "$ wipefs --noheadings --output=TYPE /dev/nvme1n1",
        "$ mount -o noatime /dev/nvme1n1 /nvme",
    ]


def test_disks_that_never_come_are_given_up(tmp_path: Path) -> None:
    Disks(names=ONE).lay(tmp_path)
    blank = Disks(names=ONE)
    said = Transcript(root=tmp_path, answers={"lsblk": blank.answer}, reads=LOOKS)
    with pytest.raises(HostError, match=r"^the machine's own disks are not at /nvme after 8 steps$"):
        mount_own_disks(said, Path("/nvme"), tmp_path)
