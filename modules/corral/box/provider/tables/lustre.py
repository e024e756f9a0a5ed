"""FSx for Lustre: file systems, and their links to S3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import absence
from corral.box.provider.resource import Change, Resource, State
from corral.box.provider.shapes import Prop, block, flag, text, whole, words, wordset
from corral.box.provider.tables.ec2 import only
from corral.box.provider.translate import record, request, tag_list, tag_map


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
    asked |= request(LUSTRE.props, change.new, change.names & {"storageCapacity", "fileSystemTypeVersion"})
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
    """What grows in place and shrinks only as another file system; one of the first kind cannot grow either."""
    grows = _at_least(old, new, "storageCapacity") and old.get("deploymentType") != "SCRATCH_1"
    found = set() if grows else {"storageCapacity"}
    if str(new.get("fileSystemTypeVersion") or "") < str(old.get("fileSystemTypeVersion") or ""):
        found.add("fileSystemTypeVersion")
    before, after = (values.get("metadataConfiguration") or {} for values in (old, new))
    if after.get("mode") == "USER_PROVISIONED" and not _at_least(before, after, "iops"):
        found.add("metadataConfiguration")
    return frozenset(found)


def _at_least(old: State, new: State, name: str) -> bool:
    before, after = old.get(name) or 0, new.get(name) or 0
    return isinstance(after, int) and after >= before


LUSTRE_CONFIGURATION: Mapping[str, Prop] = {
    "deploymentType": text(replaces=True, default="SCRATCH_1"),
    "perUnitStorageThroughput": whole(),
    "dataCompressionType": text(default="NONE"),
    "driveCacheType": text(replaces=True),
    "efaEnabled": flag(replaces=True, computed=True),
    "automaticBackupRetentionDays": whole(computed=True),
    "dailyAutomaticBackupStartTime": text(computed=True),
    "weeklyMaintenanceStartTime": text(computed=True),
    "copyTagsToBackups": flag(replaces=True, default=False),
    "metadataConfiguration": block({"mode": text(computed=True), "iops": whole(computed=True)}, computed=True),
    "rootSquashConfiguration": block({"rootSquash": text(), "noSquashNids": wordset()}),
}
LUSTRE_CHANGEABLE = frozenset(
    {
        "perUnitStorageThroughput",
        "dataCompressionType",
        "automaticBackupRetentionDays",
        "dailyAutomaticBackupStartTime",
        "weeklyMaintenanceStartTime",
        "metadataConfiguration",
        "rootSquashConfiguration",
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
        "fileSystemTypeVersion": text(computed=True),
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


EVENTS: Mapping[str, Prop] = {"events": words(computed=True)}
LINK = Resource(
    token="aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation",
    props={
        "fileSystemId": text(required=True, replaces=True),
        "fileSystemPath": text(required=True, replaces=True),
        "dataRepositoryPath": text(required=True, replaces=True),
        "batchImportMetaDataOnCreate": flag(default=False),
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

RESOURCES = (
    LUSTRE,
    LINK,
)
