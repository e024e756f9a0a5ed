"""One FSx for Lustre file system and its description in the API."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from moto.ec2.utils import random_id, random_resource_id

from corral.box.delays import FSX_CREATION, seconds
from corral.model.partitions import partition_of


class FileSystem:
    """One Lustre file system."""

    def __init__(self, backend: Any, request: Mapping[str, Any], vpc_id: str) -> None:
        self.id = random_id("fs")
        self.backend = backend
        self.request = dict(request)
        self.vpc_id = vpc_id
        self.lustre = dict(request.get("LustreConfiguration") or {})
        self.lustre.setdefault("DeploymentType", "SCRATCH_1")
        self.capacity_gib = int(request["StorageCapacity"])
        self.storage = str(request.get("StorageType") or "SSD")
        self.created = time.time()
        self.deleted: float | None = None
        self.interfaces: list[str] = []
        self.mount_name = "fsx" if self.lustre["DeploymentType"] == "SCRATCH_1" else random_resource_id(8)

    @property
    def arn(self) -> str:
        """The Amazon resource name."""
        return f"{self.backend.arn_prefix}:file-system/{self.id}"

    @property
    def state(self) -> str:
        """The lifecycle in lower case, for the inventory."""
        return self.lifecycle.lower()

    @property
    def lifecycle(self) -> str:
        """CREATING, AVAILABLE or DELETING."""
        if self.deleted:
            return "DELETING"
        return "AVAILABLE" if time.time() - self.created >= seconds(FSX_CREATION) else "CREATING"

    def describe(self) -> dict[str, Any]:
        """The file system as in the API."""
        region = self.backend.region_name
        shown = {
            "OwnerId": self.backend.account_id,
            "CreationTime": self.created,
            "FileSystemId": self.id,
            "FileSystemType": "LUSTRE",
            "FileSystemTypeVersion": self.request.get("FileSystemTypeVersion") or "2.15",
            "Lifecycle": self.lifecycle,
            "StorageCapacity": self.capacity_gib,
            "StorageType": self.storage,
            "VpcId": self.vpc_id,
            "SubnetIds": self.request["SubnetIds"],
            "NetworkInterfaceIds": self.interfaces,
            "DNSName": f"{self.id}.fsx.{region}.{partition_of(region).dns_suffix}",
            "KmsKeyId": self.request.get("KmsKeyId"),
            "ResourceARN": self.arn,
            "Tags": self.backend.list_tags_for_resource(self.arn),
            "LustreConfiguration": self._describe_lustre(),
        }
        return {name: value for name, value in shown.items() if value is not None}

    def _describe_lustre(self) -> dict[str, Any]:
        shown = {
            "WeeklyMaintenanceStartTime": "7:03:00",
            "DataCompressionType": "NONE",
            "LogConfiguration": {"Level": "DISABLED"},
            "CopyTagsToBackups": False,
            **self.lustre,
            "MountName": self.mount_name,
        }
        if shown["DeploymentType"].startswith("PERSISTENT"):
            shown.setdefault("AutomaticBackupRetentionDays", 0)
        return shown
