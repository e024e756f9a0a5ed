"""EBS volumes: their encryption keys, and the rules for attaching and deleting them."""

from __future__ import annotations

from typing import Any

from corral.box.api_errors import ApiError


def key_is_usable(account: str, region: str, key_id: str) -> bool:
    """True if the KMS key (id, ARN, alias name or alias ARN) exists there and is enabled."""
    from moto.kms.models import kms_backends

    backend = kms_backends[account][region]
    name = key_id.rpartition(":")[2] if key_id.startswith("arn:") else key_id
    name = name.removeprefix("key/")
    if name == "alias/aws/ebs":
        return True
    if name.startswith("alias/"):
        name = backend.get_key_id_from_alias(name) or ""
    key = backend.keys.get(name.removeprefix("key/").rpartition("/")[2])
    return key is not None and key.key_state == "Enabled"


class Volumes:
    """The EC2 backend's volumes."""

    def create_volume(self: Any, size: int, zone_name: str, *args: Any, **kwargs: Any) -> Any:
        """Create a volume. With an unusable key it is deleted at once, as on AWS."""
        if kwargs.get("volume_type") == "gp3" and not kwargs.get("throughput"):
            kwargs["throughput"] = 125  # MiB/s, the default of gp3 (EBS user guide, general purpose SSD)
        volume = super().create_volume(size, zone_name, *args, **kwargs)  # type: ignore[misc]
        if volume.kms_key_id and kwargs.get("kms_key_id"):
            if not key_is_usable(self.account_id, self.region_name, volume.kms_key_id):
                del self.volumes[volume.id]
            volume.kms_key_id = self._key_arn(volume.kms_key_id)
        return volume

    def attach_volume(self: Any, volume_id: str, instance_id: str, device_path: str, *args: Any, **kwargs: Any) -> Any:
        """Attach a free volume to an instance of its zone."""
        volume, instance = self.get_volume(volume_id), self.get_instance(instance_id)
        if volume.attachment:
            raise ApiError("VolumeInUse", f"{volume_id} is already attached to an instance")
        if instance.state not in ("pending", "running", "stopped"):
            raise ApiError("IncorrectState", f"Instance '{instance_id}' is not 'running'.")
        if volume.availability_zone != instance.placement.zone:
            raise ApiError("InvalidVolume.ZoneMismatch", f"The volume '{volume_id}' is not in the same availability"
                          f" zone as instance '{instance_id}'")  # fmt: skip
        if device_path in instance.block_device_mapping:
            raise ApiError("InvalidParameterValue", f"Value ({device_path}) for parameter device is invalid."
                          f" {device_path} is already in use")  # fmt: skip
        return super().attach_volume(volume_id, instance_id, device_path, *args, **kwargs)  # type: ignore[misc]

    def detach_volume(self: Any, volume_id: str, instance_id: str | None, device_path: str | None) -> Any:
        """Detach a volume; the instance is optional."""
        volume = self.get_volume(volume_id)
        if not volume.attachment:
            raise ApiError("IncorrectState", f"Volume '{volume_id}' is in the 'available' state.")
        instance_id = instance_id or volume.attachment.instance.id
        return super().detach_volume(volume_id, instance_id, device_path)  # type: ignore[misc]

    def delete_volume(self: Any, volume_id: str) -> Any:
        """Delete a volume that is not attached."""
        volume = self.get_volume(volume_id)
        if volume.attachment:
            holder = volume.attachment.instance.id
            raise ApiError("VolumeInUse", f"Volume {volume_id} is currently attached to {holder}")
        self.tags.pop(volume_id, None)
        return super().delete_volume(volume_id)  # type: ignore[misc]

    def _key_arn(self: Any, key_id: str) -> str:
        if key_id.startswith(("arn:", "alias/")):
            return key_id
        return f"arn:{self.partition}:kms:{self.region_name}:{self.account_id}:key/{key_id}"
