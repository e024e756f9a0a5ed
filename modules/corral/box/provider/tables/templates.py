"""Launch templates: every change of what they launch is a new version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import absence
from corral.box.provider.resource import Change, Resource, State
from corral.box.provider.shapes import Prop, block, blocks, flag, switch, text, texts, whole, wordset
from corral.box.provider.tables.ec2 import only, retag, tagged
from corral.box.provider.translate import record, request, tag_list, tag_map

GONE = ("InvalidLaunchTemplateId.NotFound", "InvalidLaunchTemplateId.NotFoundException")

INTERFACE: Mapping[str, Prop] = {
    "deviceIndex": whole(),
    "networkCardIndex": whole(),
    "interfaceType": text(),
    "networkInterfaceId": text(),
    "subnetId": text(),
    "securityGroups": wordset(aws="Groups"),
    "associatePublicIpAddress": switch(),
    "deleteOnTermination": switch(),
    "description": text(),
    "privateIpAddress": text(),
    "ipv4AddressCount": whole(aws="SecondaryPrivateIpAddressCount"),
}
VOLUME: Mapping[str, Prop] = {
    "volumeSize": whole(computed=True),
    "volumeType": text(computed=True),
    "iops": whole(computed=True),
    "throughput": whole(computed=True),
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
            "blockDurationMinutes": whole(),
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
    "httpPutResponseHopLimit": whole(computed=True),
    "httpProtocolIpv6": text(computed=True),
    "instanceMetadataTags": text(computed=True),
}
PLACEMENT: Mapping[str, Prop] = {
    "availabilityZone": text(),
    "groupName": text(),
    "groupId": text(),
    "partitionNumber": whole(),
    "tenancy": text(),
}
LAUNCHED: Mapping[str, Prop] = {
    "imageId": text(),
    "instanceType": text(),
    "keyName": text(),
    "userData": text(),
    "ebsOptimized": switch(),
    "disableApiTermination": flag(),
    "disableApiStop": flag(),
    "instanceInitiatedShutdownBehavior": text(),
    "iamInstanceProfile": block({"arn": text(), "name": text()}),
    "monitoring": block({"enabled": flag()}),
    "networkInterfaces": blocks(INTERFACE),
    "vpcSecurityGroupIds": wordset(aws="SecurityGroupIds"),
    "blockDeviceMappings": blocks({"deviceName": text(), "ebs": block(VOLUME), "noDevice": text()}),
    "instanceMarketOptions": block(MARKET),
    "capacityReservationSpecification": block(RESERVATION),
    "placement": block(PLACEMENT),
    "metadataOptions": block(METADATA, computed=True),
    "cpuOptions": block({"coreCount": whole(), "threadsPerCore": whole()}),
    "tagSpecifications": blocks({"resourceType": text(), "tags": texts()}),
}


def _launch_data(inputs: State) -> dict[str, Any]:
    data = request(LAUNCHED, inputs, LAUNCHED.keys() - {"tagSpecifications"})
    specified = inputs.get("tagSpecifications") or []
    if specified:
        data["TagSpecifications"] = [
            {"ResourceType": one["resourceType"], "Tags": tag_list(one.get("tags"))} for one in specified
        ]
    return data


def _create(cloud: Cloud, inputs: State) -> str:
    made = cloud.ec2.create_launch_template(
        LaunchTemplateName=inputs["name"],
        LaunchTemplateData=_launch_data(inputs),
        **request(TEMPLATE.props, inputs, ("description",)),
        **tagged("launch-template", inputs),
    )
    return str(made["LaunchTemplate"]["LaunchTemplateId"])


def _read(cloud: Cloud, id: str, known: State) -> State:
    with absence(*GONE):
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
        **record(LAUNCHED, data),
        "tagSpecifications": specified,
        "name": template["LaunchTemplateName"],
        "description": described.get("VersionDescription"),
        "defaultVersion": template["DefaultVersionNumber"],
        "latestVersion": template["LatestVersionNumber"],
        "arn": cloud.arn("ec2", f"launch-template/{id}"),
        "tagsAll": tag_map(template.get("Tags")),
    }


def _update(cloud: Cloud, change: Change) -> None:
    default = change.new.get("defaultVersion")
    if change.names & VERSIONED:
        made = cloud.ec2.create_launch_template_version(
            LaunchTemplateId=change.id,
            LaunchTemplateData=_launch_data(change.new),
            **request(TEMPLATE.props, change.new, ("description",)),
        )
        if change.new.get("updateDefaultVersion"):
            default = made["LaunchTemplateVersion"]["VersionNumber"]
    elif change.touches("updateDefaultVersion") and change.new.get("updateDefaultVersion"):
        default = change.old["latestVersion"]
    if default and default != change.old.get("defaultVersion"):
        cloud.ec2.modify_launch_template(LaunchTemplateId=change.id, DefaultVersion=str(default))


def _delete(cloud: Cloud, id: str, state: State) -> None:
    with absence(*GONE):
        cloud.ec2.delete_launch_template(LaunchTemplateId=id)


VERSIONED = frozenset({*LAUNCHED, "description"})
TEMPLATE = Resource(
    token="aws:ec2/launchTemplate:LaunchTemplate",
    props={
        "name": text(replaces=True),
        "description": text(aws="VersionDescription"),
        "defaultVersion": whole(computed=True, changes_with=VERSIONED | {"updateDefaultVersion"}),
        "updateDefaultVersion": flag(kept=True),
        **LAUNCHED,
    },
    outputs={"arn": text(), "latestVersion": whole(changes_with=VERSIONED)},
    create=_create,
    read=_read,
    update=_update,
    delete=_delete,
    retag=retag,
    autonamed="name",
)

RESOURCES = (TEMPLATE,)
