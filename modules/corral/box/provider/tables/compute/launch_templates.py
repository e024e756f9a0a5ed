"""Launch templates: each change of the launch data creates a version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_list, tag_map, to_request
from corral.box.provider.property_schema import (
    Prop,
    block,
    block_list,
    boolean,
    integer,
    switch,
    text,
    text_map,
    text_set,
)
from corral.box.provider.provider_errors import not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State
from corral.box.provider.tables.ec2_requests import only, retag, tag_specifications

GONE = ("InvalidLaunchTemplateId.NotFound", "InvalidLaunchTemplateId.NotFoundException")

INTERFACE: Mapping[str, Prop] = {
    "deviceIndex": integer(),
    "networkCardIndex": integer(),
    "interfaceType": text(),
    "networkInterfaceId": text(),
    "subnetId": text(),
    "securityGroups": text_set(aws="Groups"),
    "associatePublicIpAddress": switch(),
    "deleteOnTermination": switch(),
    "description": text(),
    "privateIpAddress": text(),
    "ipv4AddressCount": integer(aws="SecondaryPrivateIpAddressCount"),
}
VOLUME: Mapping[str, Prop] = {
    "volumeSize": integer(computed=True),
    "volumeType": text(computed=True),
    "iops": integer(computed=True),
    "throughput": integer(computed=True),
    "encrypted": switch(),
    "kmsKeyId": text(),
    "snapshotId": text(),
    "deleteOnTermination": switch(),
}
MARKET: Mapping[str, Prop] = {
    "marketType": text(),
    "spotOptions": block(
        {
            "spotInstanceType": text(),
            "instanceInterruptionBehavior": text(),
            "maxPrice": text(),
            "blockDurationMinutes": integer(),
            "validUntil": text(computed=True),
        },
    ),
}
RESERVATION: Mapping[str, Prop] = {
    "capacityReservationPreference": text(),
    "capacityReservationTarget": block(
        {"capacityReservationId": text(), "capacityReservationResourceGroupArn": text()},
    ),
}
METADATA: Mapping[str, Prop] = {
    "httpEndpoint": text(computed=True),
    "httpTokens": text(computed=True),
    "httpPutResponseHopLimit": integer(computed=True),
    "httpProtocolIpv6": text(computed=True),
    "instanceMetadataTags": text(computed=True),
}
PLACEMENT: Mapping[str, Prop] = {
    "availabilityZone": text(),
    "groupName": text(),
    "groupId": text(),
    "partitionNumber": integer(),
    "tenancy": text(),
}
LAUNCHED: Mapping[str, Prop] = {
    "imageId": text(),
    "instanceType": text(),
    "keyName": text(),
    "userData": text(),
    "ebsOptimized": switch(),
    "disableApiTermination": boolean(),
    "disableApiStop": boolean(),
    "instanceInitiatedShutdownBehavior": text(),
    "iamInstanceProfile": block({"arn": text(), "name": text()}),
    "monitoring": block({"enabled": boolean()}),
    "networkInterfaces": block_list(INTERFACE),
    "vpcSecurityGroupIds": text_set(aws="SecurityGroupIds"),
    "blockDeviceMappings": block_list({"deviceName": text(), "ebs": block(VOLUME), "noDevice": text()}),
    "instanceMarketOptions": block(MARKET),
    "capacityReservationSpecification": block(RESERVATION),
    "placement": block(PLACEMENT),
    "metadataOptions": block(METADATA, computed=True),
    "cpuOptions": block({"coreCount": integer(), "threadsPerCore": integer()}),
    "tagSpecifications": block_list({"resourceType": text(), "tags": text_map()}),
}


def _launch_data(inputs: State) -> dict[str, Any]:
    data = to_request(LAUNCHED, inputs, LAUNCHED.keys() - {"tagSpecifications"})
    specified = inputs.get("tagSpecifications") or []
    if specified:
        data["TagSpecifications"] = [
            {"ResourceType": one["resourceType"], "Tags": tag_list(one.get("tags"))} for one in specified
        ]
    return data


def _create(cloud: RegionClients, inputs: State) -> str:
    made = cloud.ec2.create_launch_template(
        LaunchTemplateName=inputs["name"],
        LaunchTemplateData=_launch_data(inputs),
        **to_request(TEMPLATE.props, inputs, ("description",)),
        **tag_specifications("launch-template", inputs),
    )
    return str(made["LaunchTemplate"]["LaunchTemplateId"])


def _read(cloud: RegionClients, id: str, known: State) -> State:
    with not_found_on(*GONE):
        template = only(cloud.ec2.describe_launch_templates(LaunchTemplateIds=[id])["LaunchTemplates"], id)
    latest = [str(template["LatestVersionNumber"])]
    version = cloud.ec2.describe_launch_template_versions(LaunchTemplateId=id, Versions=latest)
    described = version["LaunchTemplateVersions"][0]
    data = described["LaunchTemplateData"]
    specified = [
        {"resourceType": one["ResourceType"], "tags": tag_map(one.get("Tags"))}
        for one in data.get("TagSpecifications", [])
    ]
    return {
        **from_response(LAUNCHED, data),
        "tagSpecifications": specified,
        "name": template["LaunchTemplateName"],
        "description": described.get("VersionDescription"),
        "defaultVersion": template["DefaultVersionNumber"],
        "latestVersion": template["LatestVersionNumber"],
        "arn": cloud.arn("ec2", f"launch-template/{id}"),
        "tagsAll": tag_map(template.get("Tags")),
    }


def _update(cloud: RegionClients, change: ResourceUpdate) -> None:
    default = change.new.get("defaultVersion")
    if change.names & VERSIONED:
        made = cloud.ec2.create_launch_template_version(
            LaunchTemplateId=change.id,
            LaunchTemplateData=_launch_data(change.new),
            **to_request(TEMPLATE.props, change.new, ("description",)),
        )
        if change.new.get("updateDefaultVersion"):
            default = made["LaunchTemplateVersion"]["VersionNumber"]
    elif change.touches("updateDefaultVersion") and change.new.get("updateDefaultVersion"):
        default = change.old["latestVersion"]
    if default and default != change.old.get("defaultVersion"):
        cloud.ec2.modify_launch_template(LaunchTemplateId=change.id, DefaultVersion=str(default))


def _delete(cloud: RegionClients, id: str, state: State) -> None:
    with not_found_on(*GONE):
        cloud.ec2.delete_launch_template(LaunchTemplateId=id)


VERSIONED = frozenset({*LAUNCHED, "description"})
TEMPLATE = Resource(
    token="aws:ec2/launchTemplate:LaunchTemplate",
    props={
        "name": text(replaces=True),
        "description": text(aws="VersionDescription"),
        "defaultVersion": integer(computed=True, changes_with=VERSIONED | {"updateDefaultVersion"}),
        "updateDefaultVersion": boolean(write_only=True),
        **LAUNCHED,
    },
    outputs={"arn": text(), "latestVersion": integer(changes_with=VERSIONED)},
    create=_create,
    read=_read,
    update=_update,
    delete=_delete,
    retag=retag,
    autonamed="name",
)

RESOURCES = (TEMPLATE,)
