"""EFS: mount targets own their network interface, which no one else can delete."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import json
import time
from typing import Any

import moto.efs.urls
from moto.ec2.exceptions import InvalidSubnetIdError
from moto.efs.exceptions import FileSystemNotFound, PolicyNotFound, SecurityGroupNotFound, SubnetNotFound
from moto.efs.models import EFSBackend
from moto.efs.responses import EFSResponse

from corral.box.api_errors import ApiError
from corral.box.delays import TARGET_CREATION, seconds


class BoxEFS(EFSBackend):
    """The EFS of one account and region."""

    _url_module = moto.efs.urls

    def create_mount_target(self, file_system_id: str, subnet_id: str, *args: Any, **kwargs: Any) -> Any:
        """A new mount target whose interface belongs to EFS."""
        self._check_network(subnet_id, *args, **kwargs)
        made = super().create_mount_target(file_system_id, subnet_id, *args, **kwargs)
        eni = self.ec2_backend.get_network_interface(made.network_interface_id)
        text = f"EFS mount target for {file_system_id} ({made.mount_target_id})"
        self.ec2_backend.assign_to_service(eni, "elasticfilesystem", text)
        made._created = time.time()
        self._set_state(made)
        return made

    def describe_mount_targets(self, *arguments: Any, **named: Any) -> Any:
        """The mount targets, each with its state at this time."""
        for target in self.mount_targets_by_id.values():
            self._set_state(target)
        return super().describe_mount_targets(*arguments, **named)

    @staticmethod
    def _set_state(target: Any) -> None:
        ready = time.time() - getattr(target, "_created", 0.0) >= seconds(TARGET_CREATION)
        target.life_cycle_state = "available" if ready else "creating"

    def _check_network(
        self, subnet_id: str, ip_address: str | None = None, security_groups: list[str] | None = None
    ) -> None:
        """Raises for a missing subnet, address or group, which moto checks too late or not at all."""
        try:
            subnet = self.ec2_backend.get_subnet(subnet_id)
        except InvalidSubnetIdError as error:
            raise SubnetNotFound(subnet_id) from error
        if ip_address is None and not subnet.free_addresses:
            raise ApiError("NoFreeAddressesInSubnet", f"There are no free addresses in subnet '{subnet_id}'.")
        for group_id in security_groups or ():
            group = self.ec2_backend.get_security_group_from_id(group_id)
            if group is None or group.vpc_id != subnet.vpc_id:
                raise SecurityGroupNotFound(group_id)

    def delete_mount_target(self, mount_target_id: str) -> None:
        """Delete a mount target and its interface."""
        target = self.mount_targets_by_id.get(mount_target_id)
        if target:
            self.ec2_backend.get_network_interface(target.network_interface_id).attachment_id = None
        super().delete_mount_target(mount_target_id)

    def get_file_system(self, file_system_id: str) -> Any:
        """The file system of that id."""
        if file_system_id not in self.file_systems_by_id:
            raise FileSystemNotFound(file_system_id)
        return self.file_systems_by_id[file_system_id]


class BoxEFSResponse(EFSResponse):
    """The actions of EFS, with two that moto lacks."""

    def put_backup_policy(self) -> tuple[str, dict[str, str | int]]:
        """PutBackupPolicy."""
        held = self.efs_backend.get_file_system(self._get_param("FileSystemId"))
        held._backup = self._get_param("BackupPolicy")["Status"] in ("ENABLED", "ENABLING")
        return self.describe_backup_policy()

    def describe_backup_policy(self) -> tuple[str, dict[str, str | int]]:
        """DescribeBackupPolicy; PolicyNotFound if none was ever set."""
        held = self.efs_backend.get_file_system(self._get_param("FileSystemId"))
        if held._backup is None:
            raise PolicyNotFound("None")
        status = "ENABLED" if held._backup else "DISABLED"
        return json.dumps({"BackupPolicy": {"Status": status}}), {"Content-Type": "application/json"}

    def update_file_system(self) -> tuple[str, dict[str, str | int]]:
        """UpdateFileSystem: the throughput mode."""
        held = self.efs_backend.get_file_system(self._get_param("FileSystemId"))
        held.throughput_mode = self._get_param("ThroughputMode") or held.throughput_mode
        wanted = self._get_param("ProvisionedThroughputInMibps")
        held.provisioned_throughput_in_mibps = wanted if held.throughput_mode == "provisioned" else None
        return json.dumps(held.info_json()), {"status": 202, "Content-Type": "application/json"}


def install() -> None:
    """Replace moto's EFS with the box's."""
    from moto.efs.models import efs_backends

    for path in moto.efs.urls.url_paths:
        moto.efs.urls.url_paths[path] = BoxEFSResponse.dispatch
    efs_backends.backend = BoxEFS
