"""Valid FSx for Lustre file systems: sizes and settings by deployment type.

Source: FSx API reference, CreateFileSystem and CreateFileSystemLustreConfiguration; FSx for Lustre user guide,
"Deployment and storage class options".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import ceil
from typing import Any

from corral.box.api_errors import ApiError
from corral.catalog.aws.lustre import metadata_iops

THROUGHPUTS = {  # valid values of PerUnitStorageThroughput, MB/s per TiB
    ("PERSISTENT_1", "SSD"): (50, 100, 200),
    ("PERSISTENT_1", "HDD"): (12, 40),
    ("PERSISTENT_2", "SSD"): (125, 250, 500, 1000),
}
STEP_GIB = {"SCRATCH_1": 3600, "SCRATCH_2": 2400, "PERSISTENT_1": 2400, "PERSISTENT_2": 2400}
SMALL_GIB = {"SCRATCH_1": (1200, 2400), "SCRATCH_2": (1200,), "PERSISTENT_1": (1200,), "PERSISTENT_2": (1200,)}
HDD_STEP_GIB = {12: 6000, 40: 1800}
EFA_STEP_GIB = {125: 38400, 250: 19200, 500: 9600, 1000: 4800}
METADATA_SERVER_IOPS = 12000
UID_GID = re.compile(r"[0-9]{1,10}:[0-9]{1,10}")
NID = re.compile(r"([0-9\[\]\-]*\.){3}([0-9\[\]\-]*)@tcp")
MAX_NIDS = 64
BACKUP_SETTINGS = ("AutomaticBackupRetentionDays", "DailyAutomaticBackupStartTime", "CopyTagsToBackups")


def check_lustre(capacity: Any, storage: str, wanted: Mapping[str, Any], key: str | None) -> None:
    """Raises ApiError unless FSx would create such a file system."""
    deployment = wanted.get("DeploymentType") or "SCRATCH_1"
    if deployment not in STEP_GIB:
        raise ApiError("BadRequest", f"Invalid deployment type: {deployment}")
    throughput = wanted.get("PerUnitStorageThroughput")
    _check_throughput(deployment, storage, throughput)
    check_capacity(capacity, deployment, storage, throughput)
    if deployment.startswith("SCRATCH"):
        backups = [name for name in BACKUP_SETTINGS if wanted.get(name)]
        if backups:
            raise ApiError("BadRequest", f"{backups[0]} cannot be set for the deployment type {deployment}:"
                          " scratch file systems have no backups.")  # fmt: skip
        if key:
            raise ApiError("BadRequest", f"KmsKeyId cannot be set for the deployment type {deployment}.")
    check_root_squash(wanted)
    _check_drive_cache(storage, wanted.get("DriveCacheType"))
    _check_metadata(deployment, wanted.get("MetadataConfiguration") or {})
    if wanted.get("EfaEnabled") and not (deployment == "PERSISTENT_2" and wanted.get("MetadataConfiguration")):
        raise ApiError("BadRequest", "EfaEnabled requires PERSISTENT_2 with a MetadataConfiguration.")
    if deployment == "PERSISTENT_2" and (wanted.get("ImportPath") or wanted.get("ExportPath")):
        raise ApiError("BadRequest", "ImportPath and ExportPath cannot be set for PERSISTENT_2; create a data"
                      " repository association.")  # fmt: skip


def _check_drive_cache(storage: str, cache: str | None) -> None:
    if (storage == "HDD") != (cache is not None):
        word = "is required" if storage == "HDD" else "cannot be set"
        raise ApiError("BadRequest", f"DriveCacheType {word} for the storage type {storage}.")


def _check_metadata(deployment: str, metadata: Mapping[str, Any]) -> None:
    """Source: FSx API reference, CreateFileSystemLustreMetadataConfiguration."""
    mode, iops = metadata.get("Mode"), metadata.get("Iops")
    if metadata and deployment != "PERSISTENT_2":
        raise ApiError("BadRequest", f"MetadataConfiguration cannot be set for the deployment type {deployment}.")
    if (mode == "USER_PROVISIONED") != (iops is not None):
        raise ApiError("BadRequest", "Iops is set in the mode USER_PROVISIONED, and only there.")
    if iops is not None and iops not in metadata_iops().provisioned:
        raise ApiError("BadRequest", f"{iops} metadata IOPS are not available.")


def check_root_squash(wanted: Mapping[str, Any]) -> None:
    """Raises ApiError unless the root squash is valid. Source: FSx API reference, LustreRootSquashConfiguration."""
    squash = wanted.get("RootSquashConfiguration") or {}
    nids, squashed_to = squash.get("NoSquashNids") or [], squash.get("RootSquash")
    if squashed_to is not None and not UID_GID.fullmatch(squashed_to):
        raise ApiError("BadRequest", f"Invalid RootSquash: {squashed_to}. The format is UID:GID.")
    if wrong := [nid for nid in nids if not NID.fullmatch(nid)]:
        raise ApiError("BadRequest", f"Invalid Lustre NID in NoSquashNids: {wrong[0]}")
    if len(nids) > MAX_NIDS:
        raise ApiError("BadRequest", f"NoSquashNids has {len(nids)} NIDs; the maximum is {MAX_NIDS}.")


def check_capacity(capacity: Any, deployment: str, storage: str, throughput: int | None) -> None:
    """Raises ApiError unless the capacity in GiB is one of the deployment type's sizes."""
    if not capacity:
        raise ApiError("BadRequest", "StorageCapacity is required for Lustre file systems.")
    step = HDD_STEP_GIB.get(throughput or 0, 6000) if storage == "HDD" else STEP_GIB[deployment]
    small = () if storage == "HDD" else SMALL_GIB[deployment]
    if capacity not in small and capacity % step:
        sizes = ", ".join(str(size) for size in small)
        raise ApiError("BadRequest", f"Storage capacity of {capacity} GiB is invalid for {deployment} {storage}; valid:"
                      f" {sizes + ' or ' if sizes else ''}a multiple of {step} GiB.")  # fmt: skip


def count_servers(capacity: int, storage: str, lustre: Mapping[str, Any]) -> int:
    """The number of storage servers, one per step of capacity, and metadata servers, one per 12,000 configured IOPS.

    Source: FSx for Lustre user guide, "IP addresses for file systems".
    """
    throughput, deployment = lustre.get("PerUnitStorageThroughput") or 0, lustre["DeploymentType"]
    step = HDD_STEP_GIB.get(throughput, 6000) if storage == "HDD" else STEP_GIB[deployment]
    step = EFA_STEP_GIB.get(throughput, step) if lustre.get("EfaEnabled") else step
    metadata = lustre.get("MetadataConfiguration") or {}
    automatic = metadata_iops().included(capacity) if metadata else 0
    return ceil(capacity / step) + ceil((metadata.get("Iops") or automatic or 1) / METADATA_SERVER_IOPS)


def _check_throughput(deployment: str, storage: str, throughput: int | None) -> None:
    if deployment.startswith("SCRATCH"):
        if throughput:
            raise ApiError("BadRequest", f"PerUnitStorageThroughput cannot be set for {deployment}.")
        if storage != "SSD":
            raise ApiError("BadRequest", f"Storage type {storage} is invalid for {deployment}.")
        return
    allowed = THROUGHPUTS.get((deployment, storage))
    if allowed is None:
        raise ApiError("BadRequest", f"Storage type {storage} is invalid for {deployment}.")
    if throughput not in allowed:
        raise ApiError("BadRequest", f"PerUnitStorageThroughput {throughput} is invalid for {deployment} {storage};"
                      f" valid: {', '.join(map(str, allowed))}.")  # fmt: skip
