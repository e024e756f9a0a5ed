"""The disks of a launch: the image's, merged with the block device mappings of the request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.box.api_errors import ApiError


def plan_disks(image: Any, mappings: list[Any]) -> tuple[Mapping[str, Any], ...]:
    """The disks of each instance by device name: `device`, `size` in GiB, `delete_on_termination`, volume settings."""
    snapshot, root = image.ebs_snapshot, image.root_device_name
    disks = {root: {"device": root, "size": snapshot.volume.size, "delete_on_termination": True}}
    for mapping in mappings:
        device = mapping.get("DeviceName")
        if not device:
            raise ApiError("MissingParameter", "The request must contain the parameter deviceName")
        if "NoDevice" in mapping:
            disks.pop(device, None)
        elif "Ebs" in mapping:
            disks[device] = _disk(mapping, disks.get(device))
    if root in disks and disks[root]["size"] < snapshot.volume.size:
        raise ApiError(
            "InvalidBlockDeviceMapping",
            f"Volume of size {disks[root]['size']}GB is smaller than snapshot '{snapshot.id}', expect size >="
            f" {snapshot.volume.size}GB",
        )
    return tuple(disks[device] for device in sorted(disks))


def _disk(mapping: Mapping[str, Any], image_disk: Mapping[str, Any] | None) -> dict[str, Any]:
    ebs = mapping["Ebs"] or {}
    size = ebs.get("VolumeSize") or (image_disk or {}).get("size")
    if not size and not ebs.get("SnapshotId"):
        raise ApiError("MissingParameter", "The request must contain the parameter size or snapshotId")
    delete_on_termination = ebs.get("DeleteOnTermination")
    wanted = {
        "snapshot_id": ebs.get("SnapshotId"),
        "encrypted": bool(ebs.get("Encrypted")),
        "kms_key_id": ebs.get("KmsKeyId"),
        "volume_type": ebs.get("VolumeType"),
        "iops": ebs.get("Iops"),
        "throughput": ebs.get("Throughput"),
    }
    delete_on_termination = bool(image_disk) if delete_on_termination is None else bool(delete_on_termination)
    return {"device": mapping["DeviceName"], "size": size, "delete_on_termination": delete_on_termination, **wanted}
