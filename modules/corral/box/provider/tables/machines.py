"""Instances, and what is attached to them: network interfaces and volumes."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import Gone, absence
from corral.box.provider.resource import Change, Resource, State
from corral.box.provider.shapes import block, flag, text, texts, whole, wordset
from corral.box.provider.tables.ec2 import ended, only, retag, tagged
from corral.box.provider.tables.templates import METADATA
from corral.box.provider.translate import record, request, tag_list, tag_map

# --- network interfaces


def _create_interface(cloud: Cloud, inputs: State) -> str:
    asked = request(INTERFACE.props, inputs, ("subnetId", "securityGroups", "description", "interfaceType"))
    addresses = list(inputs.get("privateIps") or ())
    if addresses:
        asked["PrivateIpAddresses"] = [
            {"PrivateIpAddress": address, "Primary": index == 0} for index, address in enumerate(addresses)
        ]
    made = cloud.ec2.create_network_interface(**asked, **tagged("network-interface", inputs))
    return str(made["NetworkInterface"]["NetworkInterfaceId"])


def _describe_interface(cloud: Cloud, id: str) -> Mapping[str, Any]:
    with absence("InvalidNetworkInterfaceID.NotFound"):
        found = cloud.ec2.describe_network_interfaces(NetworkInterfaceIds=[id])["NetworkInterfaces"]
    interface: Mapping[str, Any] = only(found, id)
    return interface


def _settle_interface(cloud: Cloud, id: str, inputs: State) -> None:
    wanted = inputs.get("sourceDestCheck", True)
    if _describe_interface(cloud, id).get("SourceDestCheck", True) != wanted:
        cloud.ec2.modify_network_interface_attribute(NetworkInterfaceId=id, SourceDestCheck={"Value": wanted})


def _read_interface(cloud: Cloud, id: str, known: State) -> State:
    interface = _describe_interface(cloud, id)
    return {
        **record(INTERFACE.state, interface),
        "privateIps": [one["PrivateIpAddress"] for one in interface.get("PrivateIpAddresses", [])],
        "securityGroups": [group["GroupId"] for group in interface.get("Groups", [])],
        "arn": cloud.arn("ec2", f"network-interface/{id}"),
        "tagsAll": tag_map(interface.get("TagSet")),
    }


def _update_interface(cloud: Cloud, change: Change) -> None:
    modify = cloud.ec2.modify_network_interface_attribute
    if change.touches("securityGroups"):
        modify(NetworkInterfaceId=change.id, Groups=change.new["securityGroups"])
    if change.touches("description"):
        modify(NetworkInterfaceId=change.id, Description={"Value": change.new.get("description", "")})


def _delete_interface(cloud: Cloud, id: str, state: State) -> None:
    cloud.until(lambda: _describe_interface(cloud, id)["Status"] == "available" or None, f"{id} free", timeout_s=60)
    gone = "InvalidNetworkInterfaceID.NotFound"
    ended(cloud, lambda: cloud.ec2.delete_network_interface(NetworkInterfaceId=id), id, gone)


INTERFACE = Resource(
    token="aws:ec2/networkInterface:NetworkInterface",
    props={
        "subnetId": text(required=True, replaces=True),
        "privateIps": wordset(replaces=True, computed=True),
        "securityGroups": wordset(computed=True, aws="Groups"),
        "description": text(),
        "interfaceType": text(replaces=True, computed=True),
        "sourceDestCheck": flag(default=True),
    },
    outputs={
        "arn": text(),
        "macAddress": text(),
        "ownerId": text(),
        "privateDnsName": text(),
        "privateIp": text(aws="PrivateIpAddress"),
    },
    create=_create_interface,
    settle=_settle_interface,
    read=_read_interface,
    update=_update_interface,
    delete=_delete_interface,
    retag=retag,
)

# --- volumes

VOLUME_SIZES = ("size", "type", "iops", "throughput")


def _create_volume(cloud: Cloud, inputs: State) -> str:
    return str(cloud.ec2.create_volume(**request(VOLUME.props, inputs), **tagged("volume", inputs))["VolumeId"])


def _describe_volume(cloud: Cloud, id: str) -> Mapping[str, Any]:
    with absence("InvalidVolume.NotFound"):
        volume: Mapping[str, Any] = only(cloud.ec2.describe_volumes(VolumeIds=[id])["Volumes"], id)
    if volume["State"] == "deleted":
        raise Gone(f"{id} is deleted")
    return volume


def _settle_volume(cloud: Cloud, id: str, inputs: State) -> None:
    usable = {"available", "in-use"}
    cloud.until(lambda: _describe_volume(cloud, id)["State"] in usable or None, f"{id} available")


def _read_volume(cloud: Cloud, id: str, known: State) -> State:
    volume = _describe_volume(cloud, id)
    return {
        **record(VOLUME.state, {**volume, "CreateTime": volume["CreateTime"].isoformat()}),
        "arn": cloud.arn("ec2", f"volume/{id}"),
        "tagsAll": tag_map(volume.get("Tags")),
    }


def _update_volume(cloud: Cloud, change: Change) -> None:
    if change.touches(*VOLUME_SIZES):
        cloud.ec2.modify_volume(VolumeId=change.id, **request(VOLUME.props, change.new, VOLUME_SIZES))


def _delete_volume(cloud: Cloud, id: str, state: State) -> None:
    cloud.until(lambda: _describe_volume(cloud, id)["State"] == "available" or None, f"{id} free", timeout_s=60)
    with absence("InvalidVolume.NotFound"):
        cloud.ec2.delete_volume(VolumeId=id)
    cloud.until_gone(lambda: _describe_volume(cloud, id), id)


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
    cloud.until(lambda: _state_of(cloud, instance) in {"running", "stopped"} or None, f"{instance} running")
    cloud.ec2.attach_volume(**request(ATTACHMENT.props, inputs, ("deviceName", "instanceId", "volumeId")))
    return f"{inputs['deviceName']}:{volume}:{instance}"


def _find_attachment(cloud: Cloud, id: str) -> Mapping[str, Any]:
    _, volume, instance = id.rsplit(":", 2)
    attachments = _describe_volume(cloud, volume).get("Attachments", [])
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
    with absence("IncorrectState"):  # detached by the end of the instance meanwhile
        where = request(ATTACHMENT.props, state, ("instanceId", "volumeId"))
        cloud.ec2.detach_volume(**where, Force=bool(state.get("forceDetach")))
    cloud.until_gone(lambda: _find_attachment(cloud, id), f"attachment of {attachment['VolumeId']}")


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

# --- instances

AT_REST = ("instanceType", "userData", "userDataBase64", "ebsOptimized")  # changed while the instance is stopped


def _create_instance(cloud: Cloud, inputs: State) -> str:
    asked = request(INSTANCE.props, inputs, (*SIMPLE, "metadataOptions"))
    asked |= _where(inputs) | _devices(cloud, inputs)
    if inputs.get("iamInstanceProfile"):
        asked["IamInstanceProfile"] = {"Name": inputs["iamInstanceProfile"]}
    if inputs.get("monitoring"):
        asked["Monitoring"] = {"Enabled": True}
    if user_data := _user_data(inputs):
        asked["UserData"] = user_data
    specifications = [*tagged("instance", inputs).get("TagSpecifications", []), *_volume_tags(inputs)]
    if specifications:
        asked["TagSpecifications"] = specifications
    return str(cloud.ec2.run_instances(MinCount=1, MaxCount=1, **asked)["Instances"][0]["InstanceId"])


def _where(inputs: State) -> dict[str, Any]:
    """Where the instance runs: on an interface that exists, or in a subnet."""
    if primary := inputs.get("primaryNetworkInterface"):
        return {"NetworkInterfaces": [{"DeviceIndex": 0, "NetworkInterfaceId": primary["networkInterfaceId"]}]}
    asked = request(INSTANCE.props, inputs, ("subnetId", "privateIp", "vpcSecurityGroupIds"))
    placement = request(PLACEMENT, inputs)
    return {**asked, **({"Placement": placement} if placement else {})}


def _devices(cloud: Cloud, inputs: State) -> dict[str, Any]:
    root = inputs.get("rootBlockDevice")
    if not root:
        return {}
    image = only(cloud.ec2.describe_images(ImageIds=[inputs["ami"]])["Images"], inputs["ami"])
    ebs = request(ROOT, root, ROOT.keys() - {"deviceName", "volumeId", "tags"})
    return {"BlockDeviceMappings": [{"DeviceName": image.get("RootDeviceName") or "/dev/sda1", "Ebs": ebs}]}


def _volume_tags(inputs: State) -> list[dict[str, Any]]:
    tags = (inputs.get("rootBlockDevice") or {}).get("tags")
    return [{"ResourceType": "volume", "Tags": tag_list(tags)}] if tags else []


def _user_data(inputs: State) -> bytes:
    """The bytes; boto3 encodes them."""
    if inputs.get("userDataBase64"):
        return base64.b64decode(inputs["userDataBase64"])
    return str(inputs.get("userData") or "").encode()


def _describe_instance(cloud: Cloud, id: str) -> Mapping[str, Any]:
    with absence("InvalidInstanceID.NotFound"):
        found = cloud.ec2.describe_instances(InstanceIds=[id])["Reservations"]
    instance: Mapping[str, Any] = only(only(found, id)["Instances"], id)
    if instance["State"]["Name"] == "terminated":
        raise Gone(f"{id} is terminated")
    return instance


def _state_of(cloud: Cloud, id: str) -> str:
    return str(_describe_instance(cloud, id)["State"]["Name"])


def _settle_instance(cloud: Cloud, id: str, inputs: State) -> None:
    settled = {"running", "stopped", "stopping"}
    cloud.until(lambda: _state_of(cloud, id) in settled or None, f"{id} running")


def _read_instance(cloud: Cloud, id: str, known: State) -> State:
    instance = _describe_instance(cloud, id)
    if instance["State"]["Name"] == "shutting-down":
        raise Gone(f"{id} is ending")
    profile = (instance.get("IamInstanceProfile") or {}).get("Arn", "")
    return {
        **record(INSTANCE.state, instance),
        **_placed(instance),
        **_attributes(cloud, id, known),
        **_primary(cloud, id),
        "iamInstanceProfile": profile.rpartition("/")[2] or None,
        "instanceState": instance["State"]["Name"],
        "monitoring": (instance.get("Monitoring") or {}).get("State") == "enabled",
        "rootBlockDevice": _root(cloud, instance),
        "vpcSecurityGroupIds": [group["GroupId"] for group in instance.get("SecurityGroups", [])],
        "arn": cloud.arn("ec2", f"instance/{id}"),
        "tagsAll": tag_map(instance.get("Tags")),
    }


def _placed(instance: Mapping[str, Any]) -> State:
    placement = instance.get("Placement") or {}
    return {
        "availabilityZone": placement.get("AvailabilityZone"),
        "placementGroup": placement.get("GroupName"),
        "tenancy": placement.get("Tenancy"),
    }


def _attributes(cloud: Cloud, id: str, known: State) -> State:
    def value(attribute: str) -> Any:
        answer = cloud.ec2.describe_instance_attribute(InstanceId=id, Attribute=attribute)
        return (answer.get(attribute[0].upper() + attribute[1:]) or {}).get("Value")

    encoded = value("userData") or ""
    plain = base64.b64decode(encoded).decode("utf-8", "replace") if encoded else None
    return {
        "disableApiTermination": value("disableApiTermination"),
        "instanceInitiatedShutdownBehavior": value("instanceInitiatedShutdownBehavior"),
        **({"userDataBase64": encoded} if "userDataBase64" in known else {"userData": plain}),
    }


def _primary(cloud: Cloud, id: str) -> State:
    of_instance = [{"Name": "attachment.instance-id", "Values": [id]}]
    for interface in cloud.ec2.describe_network_interfaces(Filters=of_instance)["NetworkInterfaces"]:
        attachment = interface["Attachment"]
        if attachment.get("DeviceIndex") == 0 and attachment.get("NetworkCardIndex", 0) == 0:
            own = interface["NetworkInterfaceId"]
            ends_with = attachment.get("DeleteOnTermination", False)
            return {
                "primaryNetworkInterfaceId": own,
                "primaryNetworkInterface": {"networkInterfaceId": own, "deleteOnTermination": ends_with},
                "sourceDestCheck": interface.get("SourceDestCheck", True),
            }
    return {}


def _root(cloud: Cloud, instance: Mapping[str, Any]) -> State | None:
    for mapping in instance.get("BlockDeviceMappings", []):
        if mapping["DeviceName"] == instance.get("RootDeviceName") and "Ebs" in mapping:
            volume = _describe_volume(cloud, mapping["Ebs"]["VolumeId"])
            described = {**volume, **mapping["Ebs"], "VolumeSize": volume["Size"]}
            return {
                **record(ROOT, described),
                "deviceName": mapping["DeviceName"],
                "tags": tag_map(volume.get("Tags")),
            }
    return None


def _update_instance(cloud: Cloud, change: Change) -> None:
    if change.touches(*AT_REST):
        _change_at_rest(cloud, change)
    modify, new = cloud.ec2.modify_instance_attribute, change.new
    for name in ("disableApiTermination", "instanceInitiatedShutdownBehavior"):
        if change.touches(name):
            modify(InstanceId=change.id, **{name[0].upper() + name[1:]: {"Value": new[name]}})
    if change.touches("vpcSecurityGroupIds"):
        modify(InstanceId=change.id, Groups=new["vpcSecurityGroupIds"])
    if change.touches("metadataOptions"):
        options = request(METADATA, new.get("metadataOptions") or {})
        cloud.ec2.modify_instance_metadata_options(InstanceId=change.id, **options)
    if change.touches("monitoring"):
        watch = cloud.ec2.monitor_instances if new.get("monitoring") else cloud.ec2.unmonitor_instances
        watch(InstanceIds=[change.id])
    if change.touches("iamInstanceProfile"):
        _change_profile(cloud, change)
    if change.touches("rootBlockDevice"):
        _change_root(cloud, change)


def _change_at_rest(cloud: Cloud, change: Change) -> None:
    was_running = _state_of(cloud, change.id) in {"running", "pending"}
    if was_running:
        cloud.ec2.stop_instances(InstanceIds=[change.id])
    cloud.until(lambda: _state_of(cloud, change.id) == "stopped" or None, f"{change.id} stopped")
    modify = cloud.ec2.modify_instance_attribute
    if change.touches("instanceType"):
        modify(InstanceId=change.id, InstanceType={"Value": change.new["instanceType"]})
    if change.touches("ebsOptimized"):
        modify(InstanceId=change.id, EbsOptimized={"Value": bool(change.new.get("ebsOptimized"))})
    if change.touches("userData", "userDataBase64"):
        modify(InstanceId=change.id, UserData={"Value": _user_data(change.new)})
    if was_running:
        cloud.ec2.start_instances(InstanceIds=[change.id])


def _change_profile(cloud: Cloud, change: Change) -> None:
    of_instance = [{"Name": "instance-id", "Values": [change.id]}]
    found = cloud.ec2.describe_iam_instance_profile_associations(Filters=of_instance)
    associations = found["IamInstanceProfileAssociations"]
    wanted = {"Name": change.new["iamInstanceProfile"]} if change.new.get("iamInstanceProfile") else None
    for association in associations:
        cloud.ec2.disassociate_iam_instance_profile(AssociationId=association["AssociationId"])
    if wanted:
        cloud.ec2.associate_iam_instance_profile(IamInstanceProfile=wanted, InstanceId=change.id)


def _change_root(cloud: Cloud, change: Change) -> None:
    old, new = change.old.get("rootBlockDevice") or {}, change.new.get("rootBlockDevice") or {}
    asked = {name: new[name] for name in ("volumeSize", "volumeType", "iops", "throughput") if name in new}
    if any(old.get(name) != value for name, value in asked.items()):
        sizes = request(ROOT, asked)
        sizes["Size"] = sizes.pop("VolumeSize", old["volumeSize"])
        cloud.ec2.modify_volume(VolumeId=old["volumeId"], **sizes)
    if old.get("tags") != new.get("tags") and "tags" in new:
        retag(cloud, old["volumeId"], {}, new["tags"], sorted((old.get("tags") or {}).keys() - new["tags"].keys()))


def _delete_instance(cloud: Cloud, id: str, state: State) -> None:
    with absence("InvalidInstanceID.NotFound"):
        cloud.ec2.terminate_instances(InstanceIds=[id])
    cloud.until_gone(lambda: _describe_instance(cloud, id), id)


PLACEMENT = {
    "availabilityZone": text(replaces=True, computed=True),
    "placementGroup": text(replaces=True, computed=True, aws="GroupName"),
    "tenancy": text(replaces=True, computed=True),
}
ROOT = {
    "volumeSize": whole(computed=True),
    "volumeType": text(computed=True),
    "iops": whole(computed=True),
    "throughput": whole(computed=True),
    "encrypted": flag(replaces=True, computed=True),
    "kmsKeyId": text(replaces=True, computed=True),
    "deleteOnTermination": flag(computed=True),
    "deviceName": text(computed=True),
    "volumeId": text(computed=True),
    "tags": texts(computed=True),
}
SIMPLE = (
    "ami",
    "instanceType",
    "keyName",
    "instanceInitiatedShutdownBehavior",
    "disableApiTermination",
    "ebsOptimized",
)
INSTANCE = Resource(
    token="aws:ec2/instance:Instance",
    props={
        "ami": text(required=True, replaces=True, aws="ImageId"),
        "instanceType": text(required=True),
        "keyName": text(replaces=True, computed=True),
        "subnetId": text(replaces=True, computed=True),
        "privateIp": text(replaces=True, computed=True, aws="PrivateIpAddress"),
        "vpcSecurityGroupIds": wordset(computed=True, aws="SecurityGroupIds"),
        "primaryNetworkInterface": block(
            {
                "networkInterfaceId": text(required=True, replaces=True),
                "deleteOnTermination": flag(computed=True),
            },
            computed=True,
            replaces=True,
        ),
        "userData": text(),
        "userDataBase64": text(),
        "userDataReplaceOnChange": flag(kept=True, default=False),
        "iamInstanceProfile": text(computed=True),
        "instanceInitiatedShutdownBehavior": text(computed=True),
        "disableApiTermination": flag(computed=True),
        "ebsOptimized": flag(computed=True),
        "monitoring": flag(computed=True),
        "metadataOptions": block(METADATA, computed=True),
        "rootBlockDevice": block(ROOT, computed=True),
        **PLACEMENT,
    },
    outputs={
        "arn": text(),
        "instanceState": text(),
        "primaryNetworkInterfaceId": text(),
        "privateDns": text(aws="PrivateDnsName"),
        "publicDns": text(aws="PublicDnsName"),
        "publicIp": text(aws="PublicIpAddress"),
        "sourceDestCheck": flag(),
    },
    create=_create_instance,
    settle=_settle_instance,
    read=_read_instance,
    update=_update_instance,
    delete=_delete_instance,
    retag=retag,
    replaces_if=lambda old, new: (
        frozenset({"userData", "userDataBase64"}) if new.get("userDataReplaceOnChange") else frozenset()
    ),
)

RESOURCES = (INTERFACE, VOLUME, ATTACHMENT, INSTANCE)
