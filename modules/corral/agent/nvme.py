"""A machine's own NVMe disks, as one file system where everybody may write. EC2's name for them is instance store.

What is to be done next is a pure function of what is there: a boot that was killed anywhere goes on, a reboot finds
what there was, and disks that come back blank, as they do after a stop, are made ready anew. An image that has taken
them already keeps what it made of them, and it is mounted a second time: AWS's deep learning images have a service,
dlami-nvme, that makes one LVM volume of all disks, at /opt/dlami/nvme.
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

from corral.agent.hosts import HostError

Command = tuple[str, ...]
_BY_ID = "dev/disk/by-id"
_DISKS = "nvme-Amazon_EC2_NVMe_Instance_Storage_*"
ARRAY = "/dev/md/corral-nvme"
_LABEL = "corral-nvme"  # XFS allows 12 letters
_MOUNTABLE = frozenset({"ext4", "xfs"})
_MEMBER = "linux_raid_member"
_STEPS = 8  # an array, its file system and its mount are three

log = logging.getLogger("corral.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What disks end in: a disk that nothing is made of, or an array or volume over some. `disk`: it is the former.

    `file_system`: what is written on it, empty for nothing.
    """

    name: str
    disk: bool
    file_system: str = ""
    mounts: tuple[str, ...] = ()


def mount_own_disks(run: Callable[[Sequence[str]], str], place: Path, root: Path = Path("/")) -> None:
    """Mounts the machine's own disks at this place, as a file system for everybody. Raises HostError."""
    run(("mkdir", "--parents", str(place)))
    run(("udevadm", "settle"))  # the links that name the disks are udev's
    disks = own_disks(root)
    if not disks:
        raise HostError(f"no disk of the machine's own is there for {place}: no /{_BY_ID}/{_DISKS}")
    began = time.monotonic()
    for _ in range(_STEPS):
        if (command := next_step(disks, _seen(run, disks), str(place))) is None:
            run(("chmod", "1777", str(place)))
            log.info("mount %s own disks at %s: %.0f s", len(disks), place, time.monotonic() - began)
            return
        run(command)
        run(("udevadm", "settle"))
    raise HostError(f"the machine's own disks are not at {place} after {_STEPS} steps")


def own_disks(root: Path = Path("/")) -> tuple[str, ...]:
    """The devices, sorted. A disk has several links, one of them with its namespace."""
    links = (link for link in (root / _BY_ID).glob(_DISKS) if "-part" not in link.name)
    return tuple(sorted({f"/{link.resolve().relative_to(root.resolve())}" for link in links}))


def next_step(disks: Sequence[str], ends: Sequence[End], place: str) -> Command | None:
    """The command that brings these disks nearer to being one file system at this place; None where they are."""
    if len(ends) == 1:
        return _mounted(ends[0], place)
    if not all(end.disk and not end.mounts for end in ends):
        told = ", ".join(f"{end.name} ({end.file_system or 'empty'})" for end in ends)
        raise HostError(f"the machine's own disks cannot be one file system at {place}, they are used as {told}")
    if all(end.file_system == _MEMBER for end in ends):
        return ("mdadm", "--assemble", ARRAY, *disks)
    # After another name of the host an array would else come back as a stranger's, under another name.
    options = ("--run", "--homehost=any", "--level=0", f"--raid-devices={len(disks)}")
    return ("mdadm", "--create", ARRAY, *options, *disks)


def _mounted(end: End, place: str) -> Command | None:
    if place in end.mounts:
        return None
    if end.mounts:
        return ("mount", "--bind", end.mounts[0], place)
    if end.file_system in _MOUNTABLE:
        return ("mount", "-o", "noatime", end.name, place)
    # What else is on it is the rest of something that is gone. New disks are trimmed: -K leaves that out.
    return ("mkfs.xfs", "-q", "-f", "-K", "-L", _LABEL, end.name)


def ends_of(lsblk: Mapping[str, Any]) -> tuple[End, ...]:
    """What the disks of `lsblk --json` end in, by name. One array is below each of its disks."""
    ends = {end.name: end for disk in lsblk["blockdevices"] for end in _leaves(disk)}
    return tuple(ends[name] for name in sorted(ends))


def _leaves(device: Mapping[str, Any]) -> Iterable[End]:
    if below := device.get("children"):
        return [end for child in below for end in _leaves(child)]
    mounts = tuple(sorted(mount for mount in device["mountpoints"] if mount))
    return [End(name=device["name"], disk=device["type"] == "disk", mounts=mounts)]


def _seen(run: Callable[[Sequence[str]], str], disks: Sequence[str]) -> tuple[End, ...]:
    """lsblk would ask udev what is written on a disk; wipefs, which only lists here, reads the disk itself."""
    ends = ends_of(json.loads(run(("lsblk", "--json", "--paths", "--output=NAME,TYPE,MOUNTPOINTS", *disks))))
    return tuple(replace(end, file_system=_written(run, end.name)) for end in ends)


def _written(run: Callable[[Sequence[str]], str], device: str) -> str:
    return "+".join(run(("wipefs", "--noheadings", "--output=TYPE", device)).split())
