"""Machines in namespaces of the host: their disks are directories, with the host's system or another one."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from socketserver import BaseServer

from corral.box.machines.aws_settings import aws_config, shell_profile
from corral.box.machines.cloud_init import INIT, parse_user_data, write_boot_files
from corral.box.machines.desired_machines import DesiredMachine
from corral.box.machines.image_setup import write_image_settings, write_sshd_script
from corral.box.machines.machine_disks import MachineDisks
from corral.box.machines.rootfs import HOST_SYSTEM, image_profile
from corral.box.machines.single_uid import map_users_to_one
from corral.box.vpc.capabilities import HostSupport, Users
from corral.box.vpc.virtual_network import Vpc, copy_etc, create_disk
from corral.catalog.aws.images import BOX_PROFILE, find_image_profile


class NamespaceHost:
    """Creates and starts such machines. `system`: the root directory of their system."""

    bootable_images = frozenset((BOX_PROFILE,))
    is_virtual = False

    def __init__(self, disks: MachineDisks, support: HostSupport, system: Path = HOST_SYSTEM) -> None:
        self._disks = disks
        self._support = support
        self._system = system

    def prepare(self) -> None:
        """Prepare the /etc that all new disks copy. Raises BoxError for an unsupported system."""
        etc = self._disks.directory / "etc"
        shutil.rmtree(etc, ignore_errors=True)
        copy_etc(etc, self._system)
        write_image_settings(etc, find_image_profile(image_profile(self._system)).default_user)

    def create_disk(self, one: DesiredMachine) -> None:
        """Create the machine's disk, unless it exists, with the box's endpoint in the AWS configuration.

        Raises UserDataError for unsupported user data.
        """
        disk = self._disks.disk(one.instance_id)
        if disk.exists():
            return
        boot = parse_user_data(one.user_data)
        draft = disk.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        create_disk(draft, self._disks.directory / "etc")
        write_boot_files(boot, draft)
        if self._support.users is Users.ONE:
            map_users_to_one(draft)
        else:
            write_sshd_script(draft)
        console = self._disks.consoles / one.instance_id
        console.touch()
        (draft / "console").unlink()
        (draft / "console").symlink_to(console)  # readable after the machine's end
        (draft / "box" / "wait").write_text(one.boot_wait, encoding="utf-8")
        (draft / "box" / "devices").write_text("".join(f"{name}\n" for name in one.devices), encoding="utf-8")
        health_outputs = self._disks.directory / "health"  # tool outputs for corral.agent.health.probes.BoxProbe
        if health_outputs.is_dir():
            shutil.copytree(health_outputs, draft / "box" / "health")
        _write_aws_settings(draft, one)
        draft.rename(disk)

    def start(self, vpc: Vpc, one: DesiredMachine) -> None:
        """Start the machine. Raises MachineError."""
        mounts = {"box/file-systems": self._disks.file_systems}
        disk = self._disks.disk(one.instance_id)
        vpc.start(one.instance_id, one.host_name, one.address, disk, INIT, mounts, self._system)

    def start_servers(self, directory: Path) -> Sequence[BaseServer]:
        """None: the endpoint is all that machines need."""
        return ()

    def volume(self, volume_id: str, size_gib: int) -> Path:
        """What a volume of this id holds: a directory, of any size. Creates it."""
        return self._disks.volume(volume_id)

    def serve_file_systems(self, vpc: Vpc, targets: Mapping[str, str]) -> None:
        """Nothing: machines mount the directories of file systems."""


def _write_aws_settings(disk: Path, one: DesiredMachine) -> None:
    router = one.network[1]
    config = disk / "root" / ".aws" / "config"
    config.parent.mkdir()
    config.write_text(aws_config(one.region, router), encoding="utf-8")
    profile = disk / "etc" / "profile.d" / "box.sh"
    profile.parent.mkdir(exist_ok=True)
    profile.write_text(shell_profile(one.region, router), encoding="utf-8")
