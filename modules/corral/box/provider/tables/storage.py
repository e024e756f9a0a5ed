"""File systems: EFS with mount targets and backups, FSx for Lustre with its links to S3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import Gone, absence
from corral.box.provider.resource import Change, Resource, State
from corral.box.provider.shapes import Prop, block, blocks, flag, number, text, whole, words, wordset
from corral.box.provider.tables.ec2 import only
from corral.box.provider.translate import record, request, tag_list, tag_map

# --- EFS


def _create_efs(cloud: Cloud, inputs: State) -> str:
    names = ("creationToken", "encrypted", "kmsKeyId", "performanceMode", "throughputMode", "availabilityZoneName")
    asked = request(EFS.props, inputs, (*names, "provisionedThroughputInMibps"))
    if inputs.get("tagsAll"):
        asked["Tags"] = tag_list(inputs["tagsAll"])
    return str(cloud.efs.create_file_system(**asked)["FileSystemId"])


def _describe_efs(cloud: Cloud, id: str) -> Mapping[str, Any]:
    with absence("FileSystemNotFound"):
        found = cloud.efs.describe_file_systems(FileSystemId=id)["FileSystems"]
    system: Mapping[str, Any] = only(found, id)
    if system["LifeCycleState"] == "deleted":
        raise Gone(f"{id} is deleted")
    return system


def _settle_efs(cloud: Cloud, id: str, inputs: State) -> None:
    cloud.until(lambda: _describe_efs(cloud, id)["LifeCycleState"] == "available" or None, f"{id} available")
    wanted = [request(LIFECYCLE, policy) for policy in inputs.get("lifecyclePolicies") or ()]
    if cloud.efs.describe_lifecycle_configuration(FileSystemId=id).get("LifecyclePolicies", []) != wanted:
        cloud.efs.put_lifecycle_configuration(FileSystemId=id, LifecyclePolicies=wanted)


def _read_efs(cloud: Cloud, id: str, known: State) -> State:
    system = _describe_efs(cloud, id)
    policies = cloud.efs.describe_lifecycle_configuration(FileSystemId=id).get("LifecyclePolicies", [])
    return {
        **record(EFS.state, system),
        "lifecyclePolicies": [record(LIFECYCLE, policy) for policy in policies],
        "dnsName": f"{id}.efs.{cloud.region}.amazonaws.com",
        "arn": system.get("FileSystemArn") or cloud.arn("elasticfilesystem", f"file-system/{id}"),
        "tagsAll": tag_map(system.get("Tags")),
    }


def _update_efs(cloud: Cloud, change: Change) -> None:
    names = ("throughputMode", "provisionedThroughputInMibps")
    if change.touches(*names):
        cloud.efs.update_file_system(FileSystemId=change.id, **request(EFS.props, change.new, names))


def _delete_efs(cloud: Cloud, id: str, state: State) -> None:
    with absence("FileSystemNotFound"):
        cloud.efs.delete_file_system(FileSystemId=id)
    cloud.until_gone(lambda: _describe_efs(cloud, id), id)


def _retag_efs(cloud: Cloud, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
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
        "encrypted": flag(replaces=True, computed=True),
        "kmsKeyId": text(replaces=True, computed=True),
        "performanceMode": text(replaces=True, computed=True),
        "availabilityZoneName": text(replaces=True, computed=True),
        "throughputMode": text(default="bursting"),
        "provisionedThroughputInMibps": number(),
        "lifecyclePolicies": blocks(LIFECYCLE),
    },
    outputs={
        "arn": text(),
        "dnsName": text(),
        "name": text(),
        "ownerId": text(),
        "numberOfMountTargets": whole(),
    },
    create=_create_efs,
    settle=_settle_efs,
    read=_read_efs,
    update=_update_efs,
    delete=_delete_efs,
    retag=_retag_efs,
)


def _create_target(cloud: Cloud, inputs: State) -> str:
    return str(cloud.efs.create_mount_target(**request(TARGET.props, inputs))["MountTargetId"])


def _describe_target(cloud: Cloud, id: str) -> Mapping[str, Any]:
    with absence("MountTargetNotFound"):
        target: Mapping[str, Any] = only(cloud.efs.describe_mount_targets(MountTargetId=id)["MountTargets"], id)
    if target["LifeCycleState"] == "deleted":
        raise Gone(f"{id} is deleted")
    return target


def _settle_target(cloud: Cloud, id: str, inputs: State) -> None:
    cloud.until(lambda: _describe_target(cloud, id)["LifeCycleState"] == "available" or None, f"{id} available")


def _read_target(cloud: Cloud, id: str, known: State) -> State:
    target = _describe_target(cloud, id)
    system = target["FileSystemId"]
    name = f"{system}.efs.{cloud.region}.amazonaws.com"
    return {
        **record(TARGET.state, target),
        "securityGroups": cloud.efs.describe_mount_target_security_groups(MountTargetId=id)["SecurityGroups"],
        "dnsName": name,
        "mountTargetDnsName": f"{target.get('AvailabilityZoneName', '')}.{name}",
        "fileSystemArn": cloud.arn("elasticfilesystem", f"file-system/{system}"),
    }


def _update_target(cloud: Cloud, change: Change) -> None:
    if change.touches("securityGroups"):
        groups = change.new["securityGroups"]
        cloud.efs.modify_mount_target_security_groups(MountTargetId=change.id, SecurityGroups=groups)


def _delete_target(cloud: Cloud, id: str, state: State) -> None:
    with absence("MountTargetNotFound"):
        cloud.efs.delete_mount_target(MountTargetId=id)
    cloud.until_gone(lambda: _describe_target(cloud, id), id)


TARGET = Resource(
    token="aws:efs/mountTarget:MountTarget",
    props={
        "fileSystemId": text(required=True, replaces=True),
        "subnetId": text(required=True, replaces=True),
        "ipAddress": text(replaces=True, computed=True),
        "securityGroups": wordset(computed=True),
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
    settle=_settle_target,
    read=_read_target,
    update=_update_target,
    delete=_delete_target,
)


def _put_backup(cloud: Cloud, system: str, status: str) -> None:
    cloud.efs.put_backup_policy(FileSystemId=system, BackupPolicy={"Status": status})


def _create_backup(cloud: Cloud, inputs: State) -> str:
    _put_backup(cloud, inputs["fileSystemId"], inputs["backupPolicy"]["status"])
    return str(inputs["fileSystemId"])


def _read_backup(cloud: Cloud, id: str, known: State) -> State:
    with absence("FileSystemNotFound", "PolicyNotFound"):
        policy = cloud.efs.describe_backup_policy(FileSystemId=id)["BackupPolicy"]
    return {"fileSystemId": id, "backupPolicy": {"status": policy["Status"].replace("ING", "ED")}}


def _update_backup(cloud: Cloud, change: Change) -> None:
    _put_backup(cloud, change.id, change.new["backupPolicy"]["status"])


def _delete_backup(cloud: Cloud, id: str, state: State) -> None:
    with absence("FileSystemNotFound", "PolicyNotFound"):
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

# --- FSx for Lustre


def _create_lustre(cloud: Cloud, inputs: State) -> str:
    asked = request(LUSTRE.props, inputs, WHOLE_SYSTEM)
    made = cloud.fsx.create_file_system(
        FileSystemType="LUSTRE",
        SubnetIds=[inputs["subnetIds"]],
        LustreConfiguration=request(LUSTRE_CONFIGURATION, inputs),
        Tags=tag_list(inputs.get("tagsAll")),
        **asked,
    )
    return str(made["FileSystem"]["FileSystemId"])


def _describe_lustre(cloud: Cloud, id: str) -> Mapping[str, Any]:
    with absence("FileSystemNotFound"):
        found = cloud.fsx.describe_file_systems(FileSystemIds=[id])["FileSystems"]
    system: Mapping[str, Any] = only(found, id)
    return system


def _settle_lustre(cloud: Cloud, id: str, inputs: State) -> None:
    usable = {"AVAILABLE", "MISCONFIGURED", "FAILED", "UPDATING"}
    cloud.until(lambda: _describe_lustre(cloud, id).get("Lifecycle") in usable or None, f"{id} available")


def _read_lustre(cloud: Cloud, id: str, known: State) -> State:
    system = _describe_lustre(cloud, id)
    return {
        **record(LUSTRE.state, system),
        **record({**LUSTRE_CONFIGURATION, "mountName": text()}, system.get("LustreConfiguration", {})),
        "subnetIds": system["SubnetIds"][0],
        "dnsName": system.get("DNSName") or f"{id}.fsx.{cloud.region}.amazonaws.com",
        "arn": system.get("ResourceARN") or cloud.arn("fsx", f"file-system/{id}"),
        "tagsAll": tag_map(system.get("Tags")),
    }


def _update_lustre(cloud: Cloud, change: Change) -> None:
    settings = request(LUSTRE_CONFIGURATION, change.new, change.names & LUSTRE_CHANGEABLE)
    asked: dict[str, Any] = {"LustreConfiguration": settings} if settings else {}
    asked |= request(LUSTRE.props, change.new, change.names & {"storageCapacity"})
    if asked:
        cloud.fsx.update_file_system(FileSystemId=change.id, **asked)


def _delete_lustre(cloud: Cloud, id: str, state: State) -> None:
    asked: dict[str, Any] = {}
    if state.get("deploymentType", "SCRATCH_1").startswith("PERSISTENT"):
        asked["LustreConfiguration"] = {"SkipFinalBackup": state.get("skipFinalBackup", True)}
    with absence("FileSystemNotFound"):
        cloud.fsx.delete_file_system(FileSystemId=id, **asked)
    cloud.until_gone(lambda: _describe_lustre(cloud, id), id)


def _retag_fsx(cloud: Cloud, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    if drop:
        cloud.fsx.untag_resource(ResourceARN=state["arn"], TagKeys=drop)
    if put:
        cloud.fsx.tag_resource(ResourceARN=state["arn"], Tags=tag_list(put))


def _shrinks(old: State, new: State) -> frozenset[str]:
    """A file system grows in place; a smaller one, or one of the first kind, is another file system."""
    before, after = old.get("storageCapacity") or 0, new.get("storageCapacity") or 0
    grows = isinstance(after, int) and after >= before and old.get("deploymentType") != "SCRATCH_1"
    return frozenset() if grows else frozenset({"storageCapacity"})


LUSTRE_CONFIGURATION: Mapping[str, Prop] = {
    "deploymentType": text(replaces=True, default="SCRATCH_1"),
    "perUnitStorageThroughput": whole(computed=True),
    "dataCompressionType": text(default="NONE"),
    "driveCacheType": text(replaces=True, computed=True),
    "efaEnabled": flag(replaces=True, computed=True),
    "automaticBackupRetentionDays": whole(computed=True),
    "dailyAutomaticBackupStartTime": text(computed=True),
    "weeklyMaintenanceStartTime": text(computed=True),
    "copyTagsToBackups": flag(replaces=True, computed=True),
    "metadataConfiguration": block({"mode": text(computed=True), "iops": whole(computed=True)}, computed=True),
}
LUSTRE_CHANGEABLE = frozenset(
    {
        "perUnitStorageThroughput",
        "dataCompressionType",
        "automaticBackupRetentionDays",
        "dailyAutomaticBackupStartTime",
        "weeklyMaintenanceStartTime",
        "metadataConfiguration",
    }
)
WHOLE_SYSTEM = ("storageCapacity", "storageType", "securityGroupIds", "kmsKeyId", "fileSystemTypeVersion")
LUSTRE = Resource(
    token="aws:fsx/lustreFileSystem:LustreFileSystem",
    props={
        "subnetIds": text(required=True, replaces=True),
        "storageCapacity": whole(required=True),
        "storageType": text(replaces=True, default="SSD"),
        "securityGroupIds": wordset(replaces=True, kept=True),
        "kmsKeyId": text(replaces=True, computed=True),
        "fileSystemTypeVersion": text(replaces=True, computed=True),
        "skipFinalBackup": flag(kept=True, default=True),
        **LUSTRE_CONFIGURATION,
    },
    outputs={
        "arn": text(),
        "dnsName": text(),
        "mountName": text(),
        "networkInterfaceIds": words(),
        "ownerId": text(),
        "vpcId": text(),
    },
    create=_create_lustre,
    settle=_settle_lustre,
    read=_read_lustre,
    update=_update_lustre,
    delete=_delete_lustre,
    retag=_retag_fsx,
    replaces_if=_shrinks,
)


def _create_link(cloud: Cloud, inputs: State) -> str:
    made = cloud.fsx.create_data_repository_association(
        **request(LINK.props, inputs, LINK.props.keys() - {"deleteDataInFilesystem"}),
        Tags=tag_list(inputs.get("tagsAll")),
    )
    return str(made["Association"]["AssociationId"])


def _describe_link(cloud: Cloud, id: str) -> Mapping[str, Any]:
    with absence("DataRepositoryAssociationNotFound"):
        found = cloud.fsx.describe_data_repository_associations(AssociationIds=[id])["Associations"]
    link: Mapping[str, Any] = only(found, id)
    return link


def _settle_link(cloud: Cloud, id: str, inputs: State) -> None:
    usable = {"AVAILABLE", "MISCONFIGURED", "FAILED"}
    cloud.until(lambda: _describe_link(cloud, id)["Lifecycle"] in usable or None, f"{id} available")


def _read_link(cloud: Cloud, id: str, known: State) -> State:
    link = _describe_link(cloud, id)
    return {
        **record(LINK.state, link),
        "associationId": id,
        "arn": link.get("ResourceARN") or cloud.arn("fsx", f"association/{link['FileSystemId']}/{id}"),
        "tagsAll": tag_map(link.get("Tags")),
    }


def _update_link(cloud: Cloud, change: Change) -> None:
    changed = request(LINK.props, change.new, change.names & {"s3", "importedFileChunkSize"})
    if changed:
        cloud.fsx.update_data_repository_association(AssociationId=change.id, **changed)


def _delete_link(cloud: Cloud, id: str, state: State) -> None:
    with absence("DataRepositoryAssociationNotFound"):
        delete_data = bool(state.get("deleteDataInFilesystem"))
        cloud.fsx.delete_data_repository_association(AssociationId=id, DeleteDataInFileSystem=delete_data)
    cloud.until_gone(lambda: _describe_link(cloud, id), id)


EVENTS: Mapping[str, Prop] = {"events": words()}
LINK = Resource(
    token="aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation",
    props={
        "fileSystemId": text(required=True, replaces=True),
        "fileSystemPath": text(required=True, replaces=True),
        "dataRepositoryPath": text(required=True, replaces=True),
        "batchImportMetaDataOnCreate": flag(replaces=True, default=False),
        "importedFileChunkSize": whole(computed=True),
        "deleteDataInFilesystem": flag(kept=True, default=False),
        "s3": block(
            {
                "autoImportPolicy": block(EVENTS, computed=True),
                "autoExportPolicy": block(EVENTS, computed=True),
            },
            computed=True,
        ),
    },
    outputs={"arn": text(), "associationId": text()},
    create=_create_link,
    settle=_settle_link,
    read=_read_link,
    update=_update_link,
    delete=_delete_link,
    retag=_retag_fsx,
)

RESOURCES = (EFS, TARGET, BACKUP, LUSTRE, LINK)
