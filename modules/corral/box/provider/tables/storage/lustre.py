"""FSx for Lustre: file systems, and their links to S3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_list, tag_map, to_request
from corral.box.provider.property_schema import Prop, block, boolean, integer, text, text_list, text_set
from corral.box.provider.provider_errors import not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State, Timeouts
from corral.box.provider.tables.ec2_requests import only


def _create_lustre(cloud: RegionClients, inputs: State) -> str:
    request = to_request(LUSTRE.props, inputs, WHOLE_SYSTEM)
    made = cloud.fsx.create_file_system(
        FileSystemType="LUSTRE",
        SubnetIds=[inputs["subnetIds"]],
        LustreConfiguration=to_request(LUSTRE_CONFIGURATION, inputs),
        Tags=tag_list(inputs.get("tagsAll")),
        **request,
    )
    return str(made["FileSystem"]["FileSystemId"])


def _describe_lustre(cloud: RegionClients, id: str) -> Mapping[str, Any]:
    with not_found_on("FileSystemNotFound"):
        found = cloud.fsx.describe_file_systems(FileSystemIds=[id])["FileSystems"]
    system: Mapping[str, Any] = only(found, id)
    return system


def _apply_lustre(cloud: RegionClients, id: str, inputs: State) -> None:
    usable = {"AVAILABLE", "MISCONFIGURED", "FAILED", "UPDATING"}
    cloud.until(lambda: _describe_lustre(cloud, id).get("Lifecycle") in usable or None, f"{id} available")


def _read_lustre(cloud: RegionClients, id: str, known: State) -> State:
    system = _describe_lustre(cloud, id)
    return {
        **from_response(LUSTRE.state, system),
        **from_response({**LUSTRE_CONFIGURATION, "mountName": text()}, system.get("LustreConfiguration", {})),
        "subnetIds": system["SubnetIds"][0],
        "dnsName": system.get("DNSName") or f"{id}.fsx.{cloud.region}.{cloud.partition.dns_suffix}",
        "arn": system.get("ResourceARN") or cloud.arn("fsx", f"file-system/{id}"),
        "tagsAll": tag_map(system.get("Tags")),
    }


def _update_lustre(cloud: RegionClients, change: ResourceUpdate) -> None:
    settings = to_request(LUSTRE_CONFIGURATION, change.new, change.names & LUSTRE_CHANGEABLE)
    request: dict[str, Any] = {"LustreConfiguration": settings} if settings else {}
    request |= to_request(LUSTRE.props, change.new, change.names & {"storageCapacity", "fileSystemTypeVersion"})
    if request:
        cloud.fsx.update_file_system(FileSystemId=change.id, **request)


def _delete_lustre(cloud: RegionClients, id: str, state: State) -> None:
    request: dict[str, Any] = {}
    if state.get("deploymentType", "SCRATCH_1").startswith("PERSISTENT"):
        request["LustreConfiguration"] = {"SkipFinalBackup": state.get("skipFinalBackup", True)}
    with not_found_on("FileSystemNotFound"):
        cloud.fsx.delete_file_system(FileSystemId=id, **request)
    cloud.until_gone(lambda: _describe_lustre(cloud, id), id)


def _retag_fsx(cloud: RegionClients, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    if drop:
        cloud.fsx.untag_resource(ResourceARN=state["arn"], TagKeys=drop)
    if put:
        cloud.fsx.tag_resource(ResourceARN=state["arn"], Tags=tag_list(put))


def _shrinks(old: State, new: State) -> frozenset[str]:
    """Capacity grows in place and shrinks by replacement; a SCRATCH_1 file system cannot grow either."""
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
    "perUnitStorageThroughput": integer(),
    "dataCompressionType": text(default="NONE"),
    "driveCacheType": text(replaces=True),
    "efaEnabled": boolean(replaces=True, computed=True),
    "automaticBackupRetentionDays": integer(computed=True),
    "dailyAutomaticBackupStartTime": text(computed=True),
    "weeklyMaintenanceStartTime": text(computed=True),
    "copyTagsToBackups": boolean(replaces=True, default=False),
    "metadataConfiguration": block({"mode": text(computed=True), "iops": integer(computed=True)}, computed=True),
    "rootSquashConfiguration": block({"rootSquash": text(), "noSquashNids": text_set()}),
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
    timeouts=Timeouts(create=1800, update=1800, delete=1800),
    props={
        "subnetIds": text(required=True, replaces=True),
        "storageCapacity": integer(required=True),
        "storageType": text(replaces=True, default="SSD"),
        "securityGroupIds": text_set(replaces=True, write_only=True),
        "kmsKeyId": text(replaces=True, computed=True),
        "fileSystemTypeVersion": text(computed=True),
        "skipFinalBackup": boolean(write_only=True, default=True),
        **LUSTRE_CONFIGURATION,
    },
    outputs={
        "arn": text(),
        "dnsName": text(),
        "mountName": text(),
        "networkInterfaceIds": text_list(),
        "ownerId": text(),
        "vpcId": text(),
    },
    create=_create_lustre,
    apply=_apply_lustre,
    read=_read_lustre,
    update=_update_lustre,
    delete=_delete_lustre,
    retag=_retag_fsx,
    replaces_if=_shrinks,
)


def _create_link(cloud: RegionClients, inputs: State) -> str:
    made = cloud.fsx.create_data_repository_association(
        **to_request(LINK.props, inputs, LINK.props.keys() - {"deleteDataInFilesystem"}),
        Tags=tag_list(inputs.get("tagsAll")),
    )
    return str(made["Association"]["AssociationId"])


def _describe_link(cloud: RegionClients, id: str) -> Mapping[str, Any]:
    with not_found_on("DataRepositoryAssociationNotFound"):
        found = cloud.fsx.describe_data_repository_associations(AssociationIds=[id])["Associations"]
    link: Mapping[str, Any] = only(found, id)
    return link


def _apply_link(cloud: RegionClients, id: str, inputs: State) -> None:
    usable = {"AVAILABLE", "MISCONFIGURED", "FAILED"}
    cloud.until(lambda: _describe_link(cloud, id)["Lifecycle"] in usable or None, f"{id} available")


def _read_link(cloud: RegionClients, id: str, known: State) -> State:
    link = _describe_link(cloud, id)
    return {
        **from_response(LINK.state, link),
        "associationId": id,
        "arn": link.get("ResourceARN") or cloud.arn("fsx", f"association/{link['FileSystemId']}/{id}"),
        "tagsAll": tag_map(link.get("Tags")),
    }


def _update_link(cloud: RegionClients, change: ResourceUpdate) -> None:
    changed = to_request(LINK.props, change.new, change.names & {"s3", "importedFileChunkSize"})
    if changed:
        cloud.fsx.update_data_repository_association(AssociationId=change.id, **changed)


def _delete_link(cloud: RegionClients, id: str, state: State) -> None:
    with not_found_on("DataRepositoryAssociationNotFound"):
        delete_data = bool(state.get("deleteDataInFilesystem"))
        cloud.fsx.delete_data_repository_association(AssociationId=id, DeleteDataInFileSystem=delete_data)
    cloud.until_gone(lambda: _describe_link(cloud, id), id)


EVENTS: Mapping[str, Prop] = {"events": text_list(computed=True)}
LINK = Resource(
    token="aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation",
    props={
        "fileSystemId": text(required=True, replaces=True),
        "fileSystemPath": text(required=True, replaces=True),
        "dataRepositoryPath": text(required=True, replaces=True),
        "batchImportMetaDataOnCreate": boolean(default=False),
        "importedFileChunkSize": integer(computed=True),
        "deleteDataInFilesystem": boolean(write_only=True, default=False),
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
    apply=_apply_link,
    read=_read_link,
    update=_update_link,
    delete=_delete_link,
    retag=_retag_fsx,
)

RESOURCES = (
    LUSTRE,
    LINK,
)
