"""KMS keys and their aliases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_map, to_request
from corral.box.provider.property_schema import boolean, integer, json_document, text
from corral.box.provider.provider_errors import NotFound, not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State


def _create_key(cloud: RegionClients, inputs: State) -> str:
    names = ("description", "policy", "keyUsage", "customerMasterKeySpec", "multiRegion")
    request = to_request(KEY.props, inputs, (*names, "bypassPolicyLockoutSafetyCheck"))
    tags = [{"TagKey": key, "TagValue": value} for key, value in (inputs.get("tagsAll") or {}).items()]
    return str(cloud.kms.create_key(**request, Tags=tags)["KeyMetadata"]["KeyId"])


def _describe_key(cloud: RegionClients, id: str) -> Mapping[str, Any]:
    with not_found_on("NotFoundException"):
        key: Mapping[str, Any] = cloud.kms.describe_key(KeyId=id)["KeyMetadata"]
    if key["KeyState"] == "PendingDeletion":
        raise NotFound(f"{id} is scheduled for deletion")
    return key


def _apply_key(cloud: RegionClients, id: str, inputs: State) -> None:
    rotates, wanted = cloud.kms.get_key_rotation_status(KeyId=id)["KeyRotationEnabled"], inputs.get("enableKeyRotation")
    if bool(wanted) != rotates:
        (cloud.kms.enable_key_rotation if wanted else cloud.kms.disable_key_rotation)(KeyId=id)
    enabled = inputs.get("isEnabled", True)
    if _describe_key(cloud, id)["Enabled"] != enabled:
        (cloud.kms.enable_key if enabled else cloud.kms.disable_key)(KeyId=id)


def _read_key(cloud: RegionClients, id: str, known: State) -> State:
    key = _describe_key(cloud, id)
    tags = cloud.kms.list_resource_tags(KeyId=id)["Tags"]
    return {
        **from_response(KEY.state, key),
        "isEnabled": key["Enabled"],
        "policy": cloud.kms.get_key_policy(KeyId=id, PolicyName="default")["Policy"],
        "enableKeyRotation": cloud.kms.get_key_rotation_status(KeyId=id)["KeyRotationEnabled"],
        "tagsAll": tag_map(tags, "TagKey", "TagValue"),
    }


def _update_key(cloud: RegionClients, change: ResourceUpdate) -> None:
    if change.touches("description"):
        cloud.kms.update_key_description(KeyId=change.id, Description=change.new.get("description", ""))
    if change.touches("policy"):
        cloud.kms.put_key_policy(KeyId=change.id, PolicyName="default", Policy=change.new["policy"])


def _delete_key(cloud: RegionClients, id: str, state: State) -> None:
    _describe_key(cloud, id)
    cloud.kms.schedule_key_deletion(KeyId=id, PendingWindowInDays=state.get("deletionWindowInDays") or 30)


def _retag_key(cloud: RegionClients, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    if drop:
        cloud.kms.untag_resource(KeyId=id, TagKeys=drop)
    if put:
        tags = [{"TagKey": key, "TagValue": value} for key, value in put.items()]
        cloud.kms.tag_resource(KeyId=id, Tags=tags)


KEY = Resource(
    token="aws:kms/key:Key",
    props={
        "description": text(computed=True),
        "policy": json_document(computed=True),
        "keyUsage": text(replaces=True, default="ENCRYPT_DECRYPT"),
        "customerMasterKeySpec": text(replaces=True, default="SYMMETRIC_DEFAULT"),
        "multiRegion": boolean(replaces=True, computed=True),
        "enableKeyRotation": boolean(default=False),
        "isEnabled": boolean(default=True),
        "deletionWindowInDays": integer(write_only=True),
        "bypassPolicyLockoutSafetyCheck": boolean(write_only=True, default=False),
    },
    outputs={"arn": text(), "keyId": text()},
    create=_create_key,
    apply=_apply_key,
    read=_read_key,
    update=_update_key,
    delete=_delete_key,
    retag=_retag_key,
)


def _create_alias(cloud: RegionClients, inputs: State) -> str:
    cloud.kms.create_alias(AliasName=inputs["name"], TargetKeyId=inputs["targetKeyId"])
    return str(inputs["name"])


def _read_alias(cloud: RegionClients, id: str, known: State) -> State:
    pages = cloud.kms.get_paginator("list_aliases").paginate()
    found = [alias for page in pages for alias in page["Aliases"] if alias["AliasName"] == id]
    if not found or not found[0].get("TargetKeyId"):
        raise NotFound(f"{id} does not exist")
    key, wanted = found[0]["TargetKeyId"], str(known.get("targetKeyId", ""))
    return {
        "name": id,
        "targetKeyId": wanted if wanted.endswith(key) else key,  # a program may give the id or the ARN
        "arn": found[0]["AliasArn"],
        "targetKeyArn": cloud.arn("kms", f"key/{key}"),
    }


def _update_alias(cloud: RegionClients, change: ResourceUpdate) -> None:
    cloud.kms.update_alias(AliasName=change.id, TargetKeyId=change.new["targetKeyId"])


def _delete_alias(cloud: RegionClients, id: str, state: State) -> None:
    with not_found_on("NotFoundException"):
        cloud.kms.delete_alias(AliasName=id)


ALIAS = Resource(
    token="aws:kms/alias:Alias",
    props={"name": text(replaces=True), "targetKeyId": text(required=True)},
    outputs={"arn": text(), "targetKeyArn": text(changes_with="targetKeyId")},
    create=_create_alias,
    read=_read_alias,
    update=_update_alias,
    delete=_delete_alias,
    autonamed="name",
    autoname_prefix="alias/",
)


RESOURCES = (
    KEY,
    ALIAS,
)
