"""EBS volumes and their attachments."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_map, to_request
from corral.box.provider.property_schema import boolean, integer, text
from corral.box.provider.provider_errors import NotFound, not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State
from corral.box.provider.tables.ec2_requests import describe_volume, instance_state, only, retag, tag_specifications

VOLUME_SIZES = ("size", "type", "iops", "throughput")


def _create_volume(cloud: RegionClients, inputs: State) -> str:
    return str(
        cloud.ec2.create_volume(**to_request(VOLUME.props, inputs), **tag_specifications("volume", inputs))["VolumeId"]
    )


def _apply_volume(cloud: RegionClients, id: str, inputs: State) -> None:
    usable = {"available", "in-use"}
    cloud.until(lambda: describe_volume(cloud, id)["State"] in usable or None, f"{id} available")


def _read_volume(cloud: RegionClients, id: str, known: State) -> State:
    volume = describe_volume(cloud, id)
    return {
        **from_response(VOLUME.state, {**volume, "CreateTime": volume["CreateTime"].isoformat()}),
        "arn": cloud.arn("ec2", f"volume/{id}"),
        "tagsAll": tag_map(volume.get("Tags")),
    }


def _update_volume(cloud: RegionClients, change: ResourceUpdate) -> None:
    if change.touches(*VOLUME_SIZES):
        cloud.ec2.modify_volume(VolumeId=change.id, **to_request(VOLUME.props, change.new, VOLUME_SIZES))


def _delete_volume(cloud: RegionClients, id: str, state: State) -> None:
    cloud.until(lambda: describe_volume(cloud, id)["State"] == "available" or None, f"{id} free")
    with not_found_on("InvalidVolume.NotFound"):
        cloud.ec2.delete_volume(VolumeId=id)
    cloud.until_gone(lambda: describe_volume(cloud, id), id)


VOLUME = Resource(
    token="aws:ebs/volume:Volume",
    props={
        "availabilityZone": text(required=True, replaces=True),
        "size": integer(computed=True),
        "type": text(computed=True, aws="VolumeType"),
        "iops": integer(computed=True),
        "throughput": integer(computed=True),
        "encrypted": boolean(replaces=True, computed=True),
        "kmsKeyId": text(replaces=True, computed=True),
        "snapshotId": text(replaces=True, computed=True),
    },
    outputs={"arn": text(), "createTime": text()},
    create=_create_volume,
    apply=_apply_volume,
    read=_read_volume,
    update=_update_volume,
    delete=_delete_volume,
    retag=retag,
)


def _create_attachment(cloud: RegionClients, inputs: State) -> str:
    instance, volume = inputs["instanceId"], inputs["volumeId"]
    cloud.until(lambda: instance_state(cloud, instance) in {"running", "stopped"} or None, f"{instance} running")
    cloud.ec2.attach_volume(**to_request(ATTACHMENT.props, inputs, ("deviceName", "instanceId", "volumeId")))
    return f"{inputs['deviceName']}:{volume}:{instance}"


def _find_attachment(cloud: RegionClients, id: str) -> Mapping[str, Any]:
    _, volume, instance = id.rsplit(":", 2)
    attachments = describe_volume(cloud, volume).get("Attachments", [])
    found = [one for one in attachments if one["InstanceId"] == instance and one["State"] != "detached"]
    attachment: Mapping[str, Any] = only(found, id)
    return attachment


def _apply_attachment(cloud: RegionClients, id: str, inputs: State) -> None:
    cloud.until(lambda: _find_attachment(cloud, id)["State"] == "attached" or None, f"{id} attached")


def _read_attachment(cloud: RegionClients, id: str, known: State) -> State:
    return from_response(ATTACHMENT.state, _find_attachment(cloud, id))


def _delete_attachment(cloud: RegionClients, id: str, state: State) -> None:
    if state.get("skipDestroy"):
        return
    attachment = _find_attachment(cloud, id)
    if state.get("stopInstanceBeforeDetaching"):
        _stop(cloud, attachment["InstanceId"])
    with not_found_on("IncorrectState"):  # the termination of the instance has detached it
        where = to_request(ATTACHMENT.props, state, ("deviceName", "instanceId", "volumeId"))
        cloud.ec2.detach_volume(**where, Force=bool(state.get("forceDetach")))
    cloud.until_gone(lambda: _find_attachment(cloud, id), f"attachment of {attachment['VolumeId']}")


def _stop(cloud: RegionClients, instance: str) -> None:
    """Stop the instance and wait until it is stopped or terminated. Fails for one that is shutting down, as on AWS."""
    cloud.ec2.stop_instances(InstanceIds=[instance], Force=False)
    with suppress(NotFound):
        cloud.until(lambda: instance_state(cloud, instance) == "stopped" or None, f"{instance} stopped")


ATTACHMENT = Resource(
    token="aws:ec2/volumeAttachment:VolumeAttachment",
    props={
        "deviceName": text(required=True, replaces=True, aws="Device"),
        "instanceId": text(required=True, replaces=True),
        "volumeId": text(required=True, replaces=True),
        "forceDetach": boolean(write_only=True),
        "skipDestroy": boolean(write_only=True),
        "stopInstanceBeforeDetaching": boolean(write_only=True),
    },
    create=_create_attachment,
    apply=_apply_attachment,
    read=_read_attachment,
    delete=_delete_attachment,
)

RESOURCES = (
    VOLUME,
    ATTACHMENT,
)
