"""aws:ec2:Instance: RunInstances from inputs, updates in place, termination."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from corral.box.provider.aws_clients import PROFILE_S, RegionClients
from corral.box.provider.property_conversion import from_response, tag_list, tag_map, to_request
from corral.box.provider.property_schema import block, boolean, integer, text, text_map, text_set
from corral.box.provider.provider_errors import not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State, Timeouts
from corral.box.provider.tables.compute.launch_templates import METADATA
from corral.box.provider.tables.ec2_requests import (
    describe_instance,
    describe_volume,
    instance_state,
    only,
    retag,
    tag_specifications,
)

CHANGED_WHEN_STOPPED = ("instanceType", "userData", "userDataBase64")  # changed while the instance is stopped


def _create_instance(cloud: RegionClients, inputs: State) -> str:
    request = to_request(INSTANCE.props, inputs, (*SIMPLE, "metadataOptions"))
    request |= _where(inputs) | _devices(cloud, inputs)
    if inputs.get("iamInstanceProfile"):
        request["IamInstanceProfile"] = {"Name": inputs["iamInstanceProfile"]}
    if inputs.get("monitoring"):
        request["Monitoring"] = {"Enabled": True}
    if user_data := _user_data(inputs):
        request["UserData"] = user_data
    specifications = [*tag_specifications("instance", inputs).get("TagSpecifications", []), *_volume_tags(inputs)]
    if specifications:
        request["TagSpecifications"] = specifications
    made = cloud.retried(lambda: cloud.ec2.run_instances(MinCount=1, MaxCount=1, **request), _lacks_profile, PROFILE_S)
    return str(made["Instances"][0]["InstanceId"])


def _lacks_profile(error: Exception) -> bool:
    return "Invalid IAM Instance Profile" in str(error)


def _where(inputs: State) -> dict[str, Any]:
    """The network of the instance: an existing interface, or a subnet."""
    if primary := inputs.get("primaryNetworkInterface"):
        return {"NetworkInterfaces": [{"DeviceIndex": 0, "NetworkInterfaceId": primary["networkInterfaceId"]}]}
    request = to_request(INSTANCE.props, inputs, ("subnetId", "privateIp", "vpcSecurityGroupIds"))
    placement = to_request(PLACEMENT, inputs)
    return {**request, **({"Placement": placement} if placement else {})}


def _devices(cloud: RegionClients, inputs: State) -> dict[str, Any]:
    root = inputs.get("rootBlockDevice")
    if not root:
        return {}
    image = only(cloud.ec2.describe_images(ImageIds=[inputs["ami"]])["Images"], inputs["ami"])
    ebs = to_request(ROOT, root, ROOT.keys() - {"deviceName", "volumeId", "tags"})
    return {"BlockDeviceMappings": [{"DeviceName": image.get("RootDeviceName") or "/dev/sda1", "Ebs": ebs}]}


def _volume_tags(inputs: State) -> list[dict[str, Any]]:
    tags = (inputs.get("rootBlockDevice") or {}).get("tags")
    return [{"ResourceType": "volume", "Tags": tag_list(tags)}] if tags else []


def _user_data(inputs: State) -> bytes:
    """The user data as bytes; boto3 encodes them."""
    if inputs.get("userDataBase64"):
        return base64.b64decode(inputs["userDataBase64"])
    return str(inputs.get("userData") or "").encode()


def _apply_instance(cloud: RegionClients, id: str, inputs: State) -> None:
    settled = {"running", "stopped", "stopping"}
    cloud.until(lambda: instance_state(cloud, id) in settled or None, f"{id} running")


def _read_instance(cloud: RegionClients, id: str, known: State) -> State:
    instance = describe_instance(cloud, id)
    profile = (instance.get("IamInstanceProfile") or {}).get("Arn", "")
    return {
        **from_response(INSTANCE.state, instance),
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


def _attributes(cloud: RegionClients, id: str, known: State) -> State:
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


def _primary(cloud: RegionClients, id: str) -> State:
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


def _root(cloud: RegionClients, instance: Mapping[str, Any]) -> State | None:
    for mapping in instance.get("BlockDeviceMappings", []):
        if mapping["DeviceName"] == instance.get("RootDeviceName") and "Ebs" in mapping:
            volume = describe_volume(cloud, mapping["Ebs"]["VolumeId"])
            described = {**volume, **mapping["Ebs"], "VolumeSize": volume["Size"]}
            return {
                **from_response(ROOT, described),
                "deviceName": mapping["DeviceName"],
                "tags": tag_map(volume.get("Tags")),
            }
    return None


def _update_instance(cloud: RegionClients, change: ResourceUpdate) -> None:
    if change.touches(*CHANGED_WHEN_STOPPED):
        _change_stopped_instance(cloud, change)
    modify, new = cloud.ec2.modify_instance_attribute, change.new
    for name in ("disableApiTermination", "instanceInitiatedShutdownBehavior"):
        if change.touches(name):
            modify(InstanceId=change.id, **{name[0].upper() + name[1:]: {"Value": new[name]}})
    if change.touches("vpcSecurityGroupIds"):
        modify(InstanceId=change.id, Groups=new["vpcSecurityGroupIds"])
    if change.touches("metadataOptions"):
        options = to_request(OPTIONS, {**METADATA_DEFAULTS, **(new.get("metadataOptions") or {})})
        cloud.ec2.modify_instance_metadata_options(InstanceId=change.id, **options)
    if change.touches("monitoring"):
        watch = cloud.ec2.monitor_instances if new.get("monitoring") else cloud.ec2.unmonitor_instances
        watch(InstanceIds=[change.id])
    if change.touches("iamInstanceProfile"):
        _change_profile(cloud, change)
    if change.touches("rootBlockDevice"):
        _change_root(cloud, change)


def _change_stopped_instance(cloud: RegionClients, change: ResourceUpdate) -> None:
    was_running = instance_state(cloud, change.id) in {"running", "pending"}
    if was_running:
        cloud.ec2.stop_instances(InstanceIds=[change.id])
    cloud.until(lambda: instance_state(cloud, change.id) == "stopped" or None, f"{change.id} stopped")
    modify = cloud.ec2.modify_instance_attribute
    if change.touches("instanceType"):
        modify(InstanceId=change.id, InstanceType={"Value": change.new["instanceType"]})
    if change.touches("userData", "userDataBase64"):
        modify(InstanceId=change.id, UserData={"Value": _user_data(change.new)})
    if was_running:
        cloud.ec2.start_instances(InstanceIds=[change.id])


def _change_profile(cloud: RegionClients, change: ResourceUpdate) -> None:
    of_instance = [{"Name": "instance-id", "Values": [change.id]}]
    found = cloud.ec2.describe_iam_instance_profile_associations(Filters=of_instance)
    associations = found["IamInstanceProfileAssociations"]
    wanted = {"Name": change.new["iamInstanceProfile"]} if change.new.get("iamInstanceProfile") else None
    for association in associations:
        cloud.ec2.disassociate_iam_instance_profile(AssociationId=association["AssociationId"])
    if wanted:
        cloud.ec2.associate_iam_instance_profile(IamInstanceProfile=wanted, InstanceId=change.id)


def _change_root(cloud: RegionClients, change: ResourceUpdate) -> None:
    old, new = change.old.get("rootBlockDevice") or {}, change.new.get("rootBlockDevice") or {}
    request = {name: new[name] for name in ("volumeSize", "volumeType", "iops", "throughput") if name in new}
    if any(old.get(name) != value for name, value in request.items()):
        sizes = to_request(ROOT, request)
        sizes["Size"] = sizes.pop("VolumeSize", old["volumeSize"])
        cloud.ec2.modify_volume(VolumeId=old["volumeId"], **sizes)
    keep, kept = new.get("deleteOnTermination", True), old.get("deleteOnTermination", True)
    if keep != kept:
        mapping = {"DeviceName": old["deviceName"], "Ebs": {"DeleteOnTermination": keep}}
        cloud.ec2.modify_instance_attribute(InstanceId=change.id, BlockDeviceMappings=[mapping])
    if old.get("tags") != new.get("tags") and "tags" in new:
        retag(cloud, old["volumeId"], {}, new["tags"], sorted((old.get("tags") or {}).keys() - new["tags"].keys()))


def _delete_instance(cloud: RegionClients, id: str, state: State) -> None:
    with not_found_on("InvalidInstanceID.NotFound"):
        cloud.ec2.terminate_instances(InstanceIds=[id])
    cloud.until_gone(lambda: describe_instance(cloud, id), id)


PLACEMENT = {
    "availabilityZone": text(replaces=True, computed=True),
    "placementGroup": text(replaces=True, computed=True, aws="GroupName"),
    "tenancy": text(replaces=True, computed=True),
}
ROOT = {
    "volumeSize": integer(computed=True),
    "volumeType": text(computed=True),
    "iops": integer(computed=True),
    "throughput": integer(computed=True),
    "encrypted": boolean(replaces=True, computed=True),
    "kmsKeyId": text(replaces=True, computed=True),
    "deleteOnTermination": boolean(default=True),
    "deviceName": text(computed=True),
    "volumeId": text(computed=True),
    "tags": text_map(computed=True),
}
METADATA_DEFAULTS = {"httpEndpoint": "enabled", "httpProtocolIpv6": "disabled"}
OPTIONS = {**METADATA, **{name: text(default=value) for name, value in METADATA_DEFAULTS.items()}}
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
    timeouts=Timeouts(delete=1200),
    props={
        "ami": text(required=True, replaces=True, aws="ImageId"),
        "instanceType": text(required=True),
        "keyName": text(replaces=True, computed=True),
        "subnetId": text(replaces=True, computed=True),
        "privateIp": text(replaces=True, computed=True, aws="PrivateIpAddress"),
        "vpcSecurityGroupIds": text_set(computed=True, aws="SecurityGroupIds"),
        "primaryNetworkInterface": block(
            {
                "networkInterfaceId": text(required=True, replaces=True),
                "deleteOnTermination": boolean(computed=True),
            },
            computed=True,
        ),
        "userData": text(),
        "userDataBase64": text(computed=True),
        "userDataReplaceOnChange": boolean(write_only=True, default=False),
        "iamInstanceProfile": text(computed=True),
        "instanceInitiatedShutdownBehavior": text(computed=True),
        "disableApiTermination": boolean(computed=True),
        "ebsOptimized": boolean(replaces=True, computed=True),
        "monitoring": boolean(computed=True),
        "metadataOptions": block(OPTIONS, computed=True),
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
        "sourceDestCheck": boolean(),
    },
    create=_create_instance,
    apply=_apply_instance,
    read=_read_instance,
    update=_update_instance,
    delete=_delete_instance,
    retag=retag,
    replaces_if=lambda old, new: (
        frozenset({"userData", "userDataBase64"}) if new.get("userDataReplaceOnChange") else frozenset()
    ),
)

RESOURCES = (INSTANCE,)
