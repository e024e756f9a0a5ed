"""Mount a machine's NVMe instance store disks as one world-writable file system.

The next command is a pure function of the current state. So an interrupted boot continues, a reboot finds its file
system, and disks that are blank after a stop are formatted again. If the image already uses the disks, its file system
is bind-mounted: AWS's deep learning images have a service, dlami-nvme, that creates one LVM volume of all disks at
/opt/dlami/nvme.
Sources: EC2 User Guide, "NVMe instance store volumes" and "Instance store volume data persistence"; mdadm(8);
lsblk(8); wipefs(8).
"""

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from corral.agent.host.base import HostError

Command = tuple[str, ...]
_BY_ID = "dev/disk/by-id"
_DISKS = "nvme-Amazon_EC2_NVMe_Instance_Storage_*"
ARRAY = "/dev/md/corral-nvme"
_LABEL = "corral-nvme"  # XFS allows 12 letters
_MOUNTABLE = frozenset({"ext4", "xfs"})
_MEMBER = "linux_raid_member"
_STEPS = 8  # an array, its file system and its mount take three

log = logging.getLogger("corral.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDevice:
    """The top of a disk's stack of devices: the disk itself (`disk`), or the array or volume that contains it.

    `file_system`: the type of its signature, empty for none.
    """

    name: str
    disk: bool
    file_system: str = ""
    mounts: tuple[str, ...] = ()


def mount_instance_store(run: Callable[[Sequence[str]], str], path: Path, root: Path = Path("/")) -> None:
    """Mount the instance store disks at this path as one world-writable file system. Raises HostError."""
    run(("mkdir", "--parents", str(path)))
    run(("udevadm", "settle"))  # udev creates the links that name the disks
    disks = instance_store_disks(root)
    if not disks:
        raise HostError(f"no instance store disk for {path}: /{_BY_ID}/{_DISKS} does not exist")
    began = time.monotonic()
    for _ in range(_STEPS):
        if (command := next_command(disks, _seen(run, disks), str(path))) is None:
            run(("chmod", "1777", str(path)))
            log.info("mount %s instance store disks at %s: %.0f s", len(disks), path, time.monotonic() - began)
            return
        run(command)
        run(("udevadm", "settle"))
    raise HostError(f"the instance store is not mounted at {path} after {_STEPS} steps")


def instance_store_disks(root: Path = Path("/")) -> tuple[str, ...]:
    """The disks' device paths, sorted. A disk has several links, one of them with its namespace."""
    links = (link for link in (root / _BY_ID).glob(_DISKS) if "-part" not in link.name)
    return tuple(sorted({f"/{link.resolve().relative_to(root.resolve())}" for link in links}))


def next_command(disks: Sequence[str], devices: Sequence[BlockDevice], path: str) -> Command | None:
    """The next command towards one file system of these disks at this path; None when it is mounted."""
    if len(devices) == 1:
        return _mounted(devices[0], path)
    if not all(device.disk and not device.mounts for device in devices):
        uses = ", ".join(f"{device.name} ({device.file_system or 'empty'})" for device in devices)
        raise HostError(f"cannot mount the instance store at {path}: its disks are in use as {uses}")
    if all(device.file_system == _MEMBER for device in devices):
        return ("mdadm", "--assemble", ARRAY, *disks)
    # Without --homehost=any, mdadm renames an array that was made under another host name.
    options = ("--run", "--homehost=any", "--level=0", f"--raid-devices={len(disks)}")
    return ("mdadm", "--create", ARRAY, *options, *disks)


def _mounted(device: BlockDevice, path: str) -> Command | None:
    if path in device.mounts:
        return None
    if device.mounts:
        return ("mount", "--bind", device.mounts[0], path)
    if device.file_system in _MOUNTABLE:
        return ("mount", "-o", "noatime", device.name, path)
    # Any other signature is left over. -K skips the discard: new disks are trimmed already.
    return ("mkfs.xfs", "-q", "-f", "-K", "-L", _LABEL, device.name)


def top_devices(lsblk: Mapping[str, Any]) -> tuple[BlockDevice, ...]:
    """The tops of the disks' stacks in `lsblk --json`, by name. An array appears below each of its disks."""
    devices = {device.name: device for disk in lsblk["blockdevices"] for device in _tops(disk)}
    return tuple(devices[name] for name in sorted(devices))


def _tops(device: Mapping[str, Any]) -> Iterable[BlockDevice]:
    if below := device.get("children"):
        return [device for child in below for device in _tops(child)]
    mounts = tuple(sorted(mount for mount in device["mountpoints"] if mount))
    return [BlockDevice(name=device["name"], disk=device["type"] == "disk", mounts=mounts)]


def _seen(run: Callable[[Sequence[str]], str], disks: Sequence[str]) -> tuple[BlockDevice, ...]:
    """The top devices with their file systems. wipefs reads the disk itself, while lsblk relies on udev."""
    devices = top_devices(json.loads(run(("lsblk", "--json", "--paths", "--output=NAME,TYPE,MOUNTPOINTS", *disks))))
    return tuple(replace(device, file_system=_written(run, device.name)) for device in devices)


def _written(run: Callable[[Sequence[str]], str], device: str) -> str:
    return "+".join(run(("wipefs", "--noheadings", "--output=TYPE", device)).split())
