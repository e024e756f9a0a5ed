"""The data of machines below the box's state: disks, volumes, file systems and consoles."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path

from corral.box.machines.cloud_init import parse_user_data, write_boot_files
from corral.box.machines.desired_machines import DesiredMachine, ExistingResources
from corral.box.machines.image_setup import write_image_settings, write_sshd_script
from corral.box.machines.rootfs import HOST_SYSTEM, image_profile
from corral.box.machines.single_uid import map_users_to_one
from corral.box.vpc.capabilities import HostSupport, Users
from corral.box.vpc.virtual_network import copy_etc, create_disk
from corral.catalog.aws.images import find_image_profile

_KINDS = ("disks", "volumes", "file-systems", "consoles")


class MachineDisks:
    """The directories of machines' data. `system`: the root directory of the machines' system."""

    def __init__(self, directory: Path, support: HostSupport, system: Path = HOST_SYSTEM) -> None:
        self._directory = directory
        self._support = support
        self.system = system

    @property
    def consoles(self) -> Path:
        """The directory of the consoles, by instance id."""
        return self._directory / "consoles"

    @property
    def file_systems(self) -> Path:
        """The directory of the file systems, which all machines share."""
        return self._directory / "file-systems"

    def disk(self, instance_id: str) -> Path:
        """The disk of an instance."""
        return self._directory / "disks" / instance_id

    def volume(self, volume_id: str) -> Path:
        """The directory of a volume. Creates it."""
        path = self._directory / "volumes" / volume_id
        path.mkdir(parents=True, exist_ok=True)
        return path

    def create_directories(self) -> None:
        """Create the directories of all kinds of data."""
        for name in _KINDS:
            (self._directory / name).mkdir(parents=True, exist_ok=True)

    def prepare_etc(self) -> None:
        """Prepare the /etc that all new disks copy. Raises BoxError for an unsupported system."""
        etc = self._directory / "etc"
        shutil.rmtree(etc, ignore_errors=True)
        copy_etc(etc, self.system)
        write_image_settings(etc, find_image_profile(image_profile(self.system)).default_user)

    def create(self, one: DesiredMachine) -> None:
        """Create the machine's disk, unless it exists, with the box's endpoint in the AWS configuration.

        Raises UserDataError for unsupported user data.
        """
        disk = self.disk(one.instance_id)
        if disk.exists():
            return
        boot = parse_user_data(one.user_data)
        draft = disk.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        create_disk(draft, self._directory / "etc")
        write_boot_files(boot, draft)
        if self._support.users is Users.ONE:
            map_users_to_one(draft)
        else:
            write_sshd_script(draft)
        console = self.consoles / one.instance_id
        console.touch()
        (draft / "console").unlink()
        (draft / "console").symlink_to(console)  # readable after the machine's end
        (draft / "box" / "wait").write_text(one.boot_wait, encoding="utf-8")
        (draft / "box" / "devices").write_text("".join(f"{name}\n" for name in one.devices), encoding="utf-8")
        health_outputs = self._directory / "health"  # tool outputs for corral.agent.health.probes.BoxProbe
        if health_outputs.is_dir():
            shutil.copytree(health_outputs, draft / "box" / "health")
        _write_aws_settings(draft, one)
        draft.rename(disk)

    def delete_orphans(self, exists: ExistingResources, present: Collection[str]) -> None:
        """Delete the data of deleted instances, volumes and file systems. `present`: machines that run or start."""
        retained = {
            "disks": exists.instances.union(present),
            "volumes": exists.volumes,
            "file-systems": exists.file_systems,
            "consoles": exists.listed,
        }
        for kind in _KINDS:
            for path in (self._directory / kind).iterdir():
                if path.stem not in retained[kind]:
                    self._remove(path)

    def _remove(self, path: Path) -> None:
        """Remove a directory as the machines' root, because it has files of their users."""
        command = [*self._support.as_machine_root, "rm", "-rf", "--", str(path)]
        subprocess.run(command, check=False, capture_output=True)


def _write_aws_settings(disk: Path, one: DesiredMachine) -> None:
    endpoint = f"http://{one.network[1]}"
    config = disk / "root" / ".aws" / "config"
    config.parent.mkdir()
    config.write_text(f"[default]\nregion = {one.region}\nendpoint_url = {endpoint}\n", encoding="utf-8")
    profile = disk / "etc" / "profile.d" / "box.sh"  # for users other than root
    profile.parent.mkdir(exist_ok=True)
    exports = f"export AWS_ENDPOINT_URL={endpoint} AWS_DEFAULT_REGION={one.region}\n"
    profile.write_text(exports, encoding="utf-8")
