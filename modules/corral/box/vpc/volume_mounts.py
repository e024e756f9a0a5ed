"""Volumes of running machines: directories mounted below /box/volumes, as attached disks."""

from __future__ import annotations

import subprocess
from pathlib import Path

from corral.box.vpc.machine_users import give_to_machines
from corral.box.vpc.vpc_state import VpcState


def share_volume_directory(vpc: VpcState) -> None:
    """Make the directory of all volumes a shared mount: later mounts in it propagate to the machines."""
    directory = vpc.directory / "volumes"
    directory.mkdir(exist_ok=True)
    for options in (("--bind", str(directory), str(directory)), ("--make-shared", str(directory))):
        subprocess.run(["mount", *options], check=True, capture_output=True)


def volume_directory(vpc: VpcState, machine: str) -> Path:
    """The directory of a machine's volumes; the machine sees it as /box/volumes."""
    path = vpc.directory / "volumes" / machine
    path.mkdir(parents=True, exist_ok=True)
    return path


def attach_volume(vpc: VpcState, machine: str, label: str, source: str) -> None:
    """Mount a directory as /box/volumes/LABEL of a machine, unless it is mounted.

    The label is a link to the mount point, created after the mount: a program that waits for the label never writes
    into the directory below the mount.
    """
    link = volume_directory(vpc, machine) / label
    path = _mount_point(link)
    with vpc.lock:
        if link not in vpc.volumes:
            path.mkdir(exist_ok=True)
            if vpc.users is not None:
                give_to_machines(Path(source))
            subprocess.run(["mount", "--bind", source, str(path)], check=True, capture_output=True)
            vpc.volumes.add(link)
            link.symlink_to(path.name)


def detach_volume(vpc: VpcState, machine: str, label: str) -> None:
    """Unmount a volume, even if it is in use or the machine has ended."""
    link = volume_directory(vpc, machine) / label
    path = _mount_point(link)
    with vpc.lock:
        if link in vpc.volumes:
            link.unlink()
            subprocess.run(["umount", "--lazy", str(path)], check=True, capture_output=True)
            vpc.volumes.discard(link)
            path.rmdir()


def _mount_point(link: Path) -> Path:
    """The mount point of a volume, next to its link; hidden from `ls`."""
    return link.with_name(f".{link.name}")
