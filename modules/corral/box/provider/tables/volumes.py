"""EBS volumes, and where they are attached."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import Gone, absence
from corral.box.provider.resource import Change, Resource, State
from corral.box.provider.shapes import flag, text, whole
from corral.box.provider.tables.ec2 import describe_volume, instance_state, only, retag, tagged
from corral.box.provider.translate import record, request, tag_map

VOLUME_SIZES = ("size", "type", "iops", "throughput")


def _create_volume(cloud: Cloud, inputs: State) -> str:
    return str(cloud.ec2.create_volume(**request(VOLUME.props, inputs), **tagged("volume", inputs))["VolumeId"])


def _settle_volume(cloud: Cloud, id: str, inputs: State) -> None:
    usable = {"available", "in-use"}
    cloud.until(lambda: describe_volume(cloud, id)["State"] in usable or None, f"{id} available")


def _read_volume(cloud: Cloud, id: str, known: State) -> State:
    volume = describe_volume(cloud, id)
    return {
        **record(VOLUME.state, {**volume, "CreateTime": volume["CreateTime"].isoformat()}),
        "arn": cloud.arn("ec2", f"volume/{id}"),
        "tagsAll": tag_map(volume.get("Tags")),
    }


def _update_volume(cloud: Cloud, change: Change) -> None:
    if change.touches(*VOLUME_SIZES):
        cloud.ec2.modify_volume(VolumeId=change.id, **request(VOLUME.props, change.new, VOLUME_SIZES))


def _delete_volume(cloud: Cloud, id: str, state: State) -> None:
    cloud.until(lambda: describe_volume(cloud, id)["State"] == "available" or None, f"{id} free", timeout_s=60)
    with absence("InvalidVolume.NotFound"):
        cloud.ec2.delete_volume(VolumeId=id)
    cloud.until_gone(lambda: describe_volume(cloud, id), id)


VOLUME = Resource(
    token="aws:ebs/volume:Volume",
    props={
        "availabilityZone": text(required=True, replaces=True),
        "size": whole(computed=True),
        "type": text(computed=True, aws="VolumeType"),
        "iops": whole(computed=True),
        "throughput": whole(computed=True),
        "encrypted": flag(replaces=True, computed=True),
        "kmsKeyId": text(replaces=True, computed=True),
        "snapshotId": text(replaces=True, computed=True),
    },
    outputs={"arn": text(), "createTime": text()},
    create=_create_volume,
    settle=_settle_volume,
    read=_read_volume,
    update=_update_volume,
    delete=_delete_volume,
    retag=retag,
)


def _create_attachment(cloud: Cloud, inputs: State) -> str:
    instance, volume = inputs["instanceId"], inputs["volumeId"]
    cloud.until(lambda: instance_state(cloud, instance) in {"running", "stopped"} or None, f"{instance} running")
    cloud.ec2.attach_volume(**request(ATTACHMENT.props, inputs, ("deviceName", "instanceId", "volumeId")))
    return f"{inputs['deviceName']}:{volume}:{instance}"


def _find_attachment(cloud: Cloud, id: str) -> Mapping[str, Any]:
    _, volume, instance = id.rsplit(":", 2)
    attachments = describe_volume(cloud, volume).get("Attachments", [])
    found = [one for one in attachments if one["InstanceId"] == instance and one["State"] != "detached"]
    attachment: Mapping[str, Any] = only(found, id)
    return attachment


def _settle_attachment(cloud: Cloud, id: str, inputs: State) -> None:
    cloud.until(lambda: _find_attachment(cloud, id)["State"] == "attached" or None, f"{id} attached")


def _read_attachment(cloud: Cloud, id: str, known: State) -> State:
    return record(ATTACHMENT.state, _find_attachment(cloud, id))


def _delete_attachment(cloud: Cloud, id: str, state: State) -> None:
    if state.get("skipDestroy"):
        return
    attachment = _find_attachment(cloud, id)
    if state.get("stopInstanceBeforeDetaching"):
        _stop(cloud, attachment["InstanceId"])
    with absence("IncorrectState"):  # detached by the end of the instance meanwhile
        where = request(ATTACHMENT.props, state, ("deviceName", "instanceId", "volumeId"))
        cloud.ec2.detach_volume(**where, Force=bool(state.get("forceDetach")))
    cloud.until_gone(lambda: _find_attachment(cloud, id), f"attachment of {attachment['VolumeId']}")


def _stop(cloud: Cloud, instance: str) -> None:
    """Returns when the instance is stopped, or has ended: one that ends cannot be stopped, and lets go by itself."""
    with suppress(Gone):
        if instance_state(cloud, instance) != "shutting-down":
            cloud.ec2.stop_instances(InstanceIds=[instance], Force=False)
        cloud.until(lambda: instance_state(cloud, instance) == "stopped" or None, f"{instance} stopped")


ATTACHMENT = Resource(
    token="aws:ec2/volumeAttachment:VolumeAttachment",
    props={
        "deviceName": text(required=True, replaces=True, aws="Device"),
        "instanceId": text(required=True, replaces=True),
        "volumeId": text(required=True, replaces=True),
        "forceDetach": flag(kept=True),
        "skipDestroy": flag(kept=True),
        "stopInstanceBeforeDetaching": flag(kept=True),
    },
    create=_create_attachment,
    settle=_settle_attachment,
    read=_read_attachment,
    delete=_delete_attachment,
)

RESOURCES = (
    VOLUME,
    ATTACHMENT,
)
