"""EFS: file systems, mount targets, backups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_list, tag_map, to_request
from corral.box.provider.property_schema import Prop, block, block_list, boolean, integer, number, text, text_set
from corral.box.provider.provider_errors import NotFound, not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State, Timeouts
from corral.box.provider.tables.ec2_requests import only


def _create_efs(cloud: RegionClients, inputs: State) -> str:
    names = ("creationToken", "encrypted", "kmsKeyId", "performanceMode", "throughputMode", "availabilityZoneName")
    request = to_request(EFS.props, inputs, (*names, "provisionedThroughputInMibps"))
    if inputs.get("tagsAll"):
        request["Tags"] = tag_list(inputs["tagsAll"])
    return str(cloud.efs.create_file_system(**request)["FileSystemId"])


def _describe_efs(cloud: RegionClients, id: str) -> Mapping[str, Any]:
    with not_found_on("FileSystemNotFound"):
        found = cloud.efs.describe_file_systems(FileSystemId=id)["FileSystems"]
    system: Mapping[str, Any] = only(found, id)
    if system["LifeCycleState"] == "deleted":
        raise NotFound(f"{id} is deleted")
    return system


def _apply_efs(cloud: RegionClients, id: str, inputs: State) -> None:
    cloud.until(lambda: _describe_efs(cloud, id)["LifeCycleState"] == "available" or None, f"{id} available")
    wanted = [to_request(LIFECYCLE, policy) for policy in inputs.get("lifecyclePolicies") or ()]
    if cloud.efs.describe_lifecycle_configuration(FileSystemId=id).get("LifecyclePolicies", []) != wanted:
        cloud.efs.put_lifecycle_configuration(FileSystemId=id, LifecyclePolicies=wanted)


def _read_efs(cloud: RegionClients, id: str, known: State) -> State:
    system = _describe_efs(cloud, id)
    policies = cloud.efs.describe_lifecycle_configuration(FileSystemId=id).get("LifecyclePolicies", [])
    return {
        **from_response(EFS.state, system),
        "lifecyclePolicies": [from_response(LIFECYCLE, policy) for policy in policies],
        "dnsName": f"{id}.efs.{cloud.region}.{cloud.partition.dns_suffix}",
        "arn": system.get("FileSystemArn") or cloud.arn("elasticfilesystem", f"file-system/{id}"),
        "tagsAll": tag_map(system.get("Tags")),
    }


def _update_efs(cloud: RegionClients, change: ResourceUpdate) -> None:
    names = ("throughputMode", "provisionedThroughputInMibps")
    if change.touches(*names):
        cloud.efs.update_file_system(FileSystemId=change.id, **to_request(EFS.props, change.new, names))


def _delete_efs(cloud: RegionClients, id: str, state: State) -> None:
    with not_found_on("FileSystemNotFound"):
        cloud.efs.delete_file_system(FileSystemId=id)
    cloud.until_gone(lambda: _describe_efs(cloud, id), id)


def _retag_efs(cloud: RegionClients, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    if drop:
        cloud.efs.untag_resource(ResourceId=id, TagKeys=drop)
    if put:
        cloud.efs.tag_resource(ResourceId=id, Tags=tag_list(put))


LIFECYCLE: Mapping[str, Prop] = {
    "transitionToIa": text(aws="TransitionToIA"),
    "transitionToArchive": text(),
    "transitionToPrimaryStorageClass": text(),
}
EFS = Resource(
    token="aws:efs/fileSystem:FileSystem",
    props={
        "creationToken": text(replaces=True, computed=True),
        "encrypted": boolean(replaces=True, computed=True),
        "kmsKeyId": text(replaces=True, computed=True),
        "performanceMode": text(replaces=True, computed=True),
        "availabilityZoneName": text(replaces=True, computed=True),
        "throughputMode": text(default="bursting"),
        "provisionedThroughputInMibps": number(),
        "lifecyclePolicies": block_list(LIFECYCLE),
    },
    outputs={
        "arn": text(),
        "dnsName": text(),
        "name": text(),
        "ownerId": text(),
        "numberOfMountTargets": integer(),
    },
    create=_create_efs,
    apply=_apply_efs,
    read=_read_efs,
    update=_update_efs,
    delete=_delete_efs,
    retag=_retag_efs,
)


def _create_target(cloud: RegionClients, inputs: State) -> str:
    return str(cloud.efs.create_mount_target(**to_request(TARGET.props, inputs))["MountTargetId"])


def _describe_target(cloud: RegionClients, id: str) -> Mapping[str, Any]:
    with not_found_on("MountTargetNotFound"):
        target: Mapping[str, Any] = only(cloud.efs.describe_mount_targets(MountTargetId=id)["MountTargets"], id)
    if target["LifeCycleState"] == "deleted":
        raise NotFound(f"{id} is deleted")
    return target


def _apply_target(cloud: RegionClients, id: str, inputs: State) -> None:
    cloud.until(lambda: _describe_target(cloud, id)["LifeCycleState"] == "available" or None, f"{id} available")


def _read_target(cloud: RegionClients, id: str, known: State) -> State:
    target = _describe_target(cloud, id)
    system = target["FileSystemId"]
    name = f"{system}.efs.{cloud.region}.{cloud.partition.dns_suffix}"
    return {
        **from_response(TARGET.state, target),
        "securityGroups": cloud.efs.describe_mount_target_security_groups(MountTargetId=id)["SecurityGroups"],
        "dnsName": name,
        "mountTargetDnsName": f"{target.get('AvailabilityZoneName', '')}.{name}",
        "fileSystemArn": cloud.arn("elasticfilesystem", f"file-system/{system}"),
    }


def _update_target(cloud: RegionClients, change: ResourceUpdate) -> None:
    if change.touches("securityGroups"):
        groups = change.new["securityGroups"]
        cloud.efs.modify_mount_target_security_groups(MountTargetId=change.id, SecurityGroups=groups)


def _delete_target(cloud: RegionClients, id: str, state: State) -> None:
    with not_found_on("MountTargetNotFound"):
        cloud.efs.delete_mount_target(MountTargetId=id)
    cloud.until_gone(lambda: _describe_target(cloud, id), id)


TARGET = Resource(
    token="aws:efs/mountTarget:MountTarget",
    timeouts=Timeouts(create=1800),
    props={
        "fileSystemId": text(required=True, replaces=True),
        "subnetId": text(required=True, replaces=True),
        "ipAddress": text(replaces=True, computed=True),
        "securityGroups": text_set(computed=True),
    },
    outputs={
        "availabilityZoneId": text(),
        "availabilityZoneName": text(),
        "dnsName": text(),
        "mountTargetDnsName": text(),
        "fileSystemArn": text(),
        "networkInterfaceId": text(),
        "ownerId": text(),
    },
    create=_create_target,
    apply=_apply_target,
    read=_read_target,
    update=_update_target,
    delete=_delete_target,
)


def _put_backup(cloud: RegionClients, system: str, status: str) -> None:
    cloud.efs.put_backup_policy(FileSystemId=system, BackupPolicy={"Status": status})


def _create_backup(cloud: RegionClients, inputs: State) -> str:
    _put_backup(cloud, inputs["fileSystemId"], inputs["backupPolicy"]["status"])
    return str(inputs["fileSystemId"])


def _read_backup(cloud: RegionClients, id: str, known: State) -> State:
    with not_found_on("FileSystemNotFound", "PolicyNotFound"):
        policy = cloud.efs.describe_backup_policy(FileSystemId=id)["BackupPolicy"]
    return {"fileSystemId": id, "backupPolicy": {"status": policy["Status"].replace("ING", "ED")}}


def _update_backup(cloud: RegionClients, change: ResourceUpdate) -> None:
    _put_backup(cloud, change.id, change.new["backupPolicy"]["status"])


def _delete_backup(cloud: RegionClients, id: str, state: State) -> None:
    with not_found_on("FileSystemNotFound", "PolicyNotFound"):
        _put_backup(cloud, id, "DISABLED")


BACKUP = Resource(
    token="aws:efs/backupPolicy:BackupPolicy",
    props={
        "fileSystemId": text(required=True, replaces=True),
        "backupPolicy": block({"status": text(required=True)}, required=True),
    },
    create=_create_backup,
    read=_read_backup,
    update=_update_backup,
    delete=_delete_backup,
)

RESOURCES = (
    EFS,
    TARGET,
    BACKUP,
)
