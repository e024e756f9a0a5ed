"""What an FSx for Lustre file system may look like: sizes and settings by deployment type.

Source: FSx API reference, CreateFileSystem and CreateFileSystemLustreConfiguration; FSx for Lustre user guide,
"Deployment and storage class options".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import ceil
from typing import Any

from corral.box.refusals import Refused
from corral.catalog.lustre import metadata_iops

THROUGHPUTS = {  # MB/s per TiB that may be asked for
    ("PERSISTENT_1", "SSD"): (50, 100, 200),
    ("PERSISTENT_1", "HDD"): (12, 40),
    ("PERSISTENT_2", "SSD"): (125, 250, 500, 1000),
}
STEP_GIB = {"SCRATCH_1": 3600, "SCRATCH_2": 2400, "PERSISTENT_1": 2400, "PERSISTENT_2": 2400}
SMALL_GIB = {"SCRATCH_1": (1200, 2400), "SCRATCH_2": (1200,), "PERSISTENT_1": (1200,), "PERSISTENT_2": (1200,)}
HDD_STEP_GIB = {12: 6000, 40: 1800}
EFA_STEP_GIB = {125: 38400, 250: 19200, 500: 9600, 1000: 4800}
METADATA_SERVER_IOPS = 12000
SQUASHED_TO = re.compile(r"[0-9]{1,10}:[0-9]{1,10}")
NID = re.compile(r"([0-9\[\]\-]*\.){3}([0-9\[\]\-]*)@tcp")
MOST_NIDS = 64
BACKUP_SETTINGS = ("AutomaticBackupRetentionDays", "DailyAutomaticBackupStartTime", "CopyTagsToBackups")


def check_lustre(capacity: Any, storage: str, wanted: Mapping[str, Any], key: str | None) -> None:
    """Raises Refused unless FSx would make such a file system."""
    deployment = wanted.get("DeploymentType") or "SCRATCH_1"
    if deployment not in STEP_GIB:
        raise Refused("BadRequest", f"Invalid deployment type: {deployment}")
    throughput = wanted.get("PerUnitStorageThroughput")
    _check_throughput(deployment, storage, throughput)
    check_capacity(capacity, deployment, storage, throughput)
    if deployment.startswith("SCRATCH"):
        backups = [name for name in BACKUP_SETTINGS if wanted.get(name)]
        if backups:
            raise Refused("BadRequest", f"{backups[0]} cannot be set for the deployment type {deployment}:"
                          " scratch file systems have no backups.")  # fmt: skip
        if key:
            raise Refused("BadRequest", f"KmsKeyId cannot be set for the deployment type {deployment}.")
    check_squash(wanted)
    if deployment == "PERSISTENT_2" and (wanted.get("ImportPath") or wanted.get("ExportPath")):
        raise Refused("BadRequest", "ImportPath and ExportPath cannot be set for PERSISTENT_2; create a data"
                      " repository association.")  # fmt: skip


def check_squash(wanted: Mapping[str, Any]) -> None:
    """Raises Refused unless FSx would take whom root is. Source: FSx API reference, LustreRootSquashConfiguration."""
    asked = wanted.get("RootSquashConfiguration") or {}
    nids, squashed_to = asked.get("NoSquashNids") or [], asked.get("RootSquash")
    if squashed_to is not None and not SQUASHED_TO.fullmatch(squashed_to):
        raise Refused("BadRequest", f"Invalid RootSquash: {squashed_to}. It is written UID:GID.")
    if wrong := [nid for nid in nids if not NID.fullmatch(nid)]:
        raise Refused("BadRequest", f"Invalid Lustre NID in NoSquashNids: {wrong[0]}")
    if len(nids) > MOST_NIDS:
        raise Refused("BadRequest", f"NoSquashNids holds {len(nids)} NIDs; {MOST_NIDS} are the most.")


def check_capacity(capacity: Any, deployment: str, storage: str, throughput: int | None) -> None:
    """Raises Refused unless the capacity in GiB is one of the deployment type's sizes."""
    if not capacity:
        raise Refused("BadRequest", "StorageCapacity is required for Lustre file systems.")
    step = HDD_STEP_GIB.get(throughput or 0, 6000) if storage == "HDD" else STEP_GIB[deployment]
    small = () if storage == "HDD" else SMALL_GIB[deployment]
    if capacity not in small and capacity % step:
        sizes = ", ".join(str(size) for size in small)
        raise Refused("BadRequest", f"Storage capacity of {capacity} GiB is invalid for {deployment} {storage}: it is"
                      f" {sizes + ' or ' if sizes else ''}a multiple of {step} GiB.")  # fmt: skip


def count_servers(capacity: int, storage: str, lustre: Mapping[str, Any]) -> int:
    """Storage servers, each of one step of capacity, and metadata servers, one for each 12,000 configured IOPS.

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
            raise Refused("BadRequest", f"PerUnitStorageThroughput cannot be set for {deployment}.")
        if storage != "SSD":
            raise Refused("BadRequest", f"Storage type {storage} is invalid for {deployment}.")
        return
    allowed = THROUGHPUTS.get((deployment, storage))
    if allowed is None:
        raise Refused("BadRequest", f"Storage type {storage} is invalid for {deployment}.")
    if throughput not in allowed:
        raise Refused("BadRequest", f"PerUnitStorageThroughput {throughput} is invalid for {deployment} {storage}:"
                      f" it is one of {', '.join(map(str, allowed))}.")  # fmt: skip
