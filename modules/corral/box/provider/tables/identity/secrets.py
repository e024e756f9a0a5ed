"""Secrets Manager: secrets without their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_list, tag_map, to_request
from corral.box.provider.property_schema import boolean, integer, json_document, text
from corral.box.provider.provider_errors import NotFound, not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State


def _create_secret(cloud: RegionClients, inputs: State) -> str:
    request = to_request(SECRET.props, inputs, ("name", "description", "kmsKeyId"))
    return str(cloud.secretsmanager.create_secret(**request, Tags=tag_list(inputs.get("tagsAll")))["ARN"])


def _apply_secret(cloud: RegionClients, id: str, inputs: State) -> None:
    if inputs.get("policy"):
        cloud.secretsmanager.put_resource_policy(SecretId=id, ResourcePolicy=inputs["policy"])


def _describe_secret(cloud: RegionClients, id: str) -> Mapping[str, Any]:
    with not_found_on("ResourceNotFoundException"):
        secret: Mapping[str, Any] = cloud.secretsmanager.describe_secret(SecretId=id)
    if secret.get("DeletedDate"):
        raise NotFound(f"{id} is deleted")
    return secret


def _read_secret(cloud: RegionClients, id: str, known: State) -> State:
    secret = _describe_secret(cloud, id)
    policy = cloud.secretsmanager.get_resource_policy(SecretId=id).get("ResourcePolicy")
    return {
        **from_response(SECRET.state, secret),
        "policy": policy,
        "arn": secret["ARN"],
        "tagsAll": tag_map(secret.get("Tags")),
    }


def _update_secret(cloud: RegionClients, change: ResourceUpdate) -> None:
    if change.touches("description", "kmsKeyId"):
        request = to_request(SECRET.props, change.new, ("description", "kmsKeyId"))
        cloud.secretsmanager.update_secret(SecretId=change.id, **{"Description": "", **request})


def _delete_secret(cloud: RegionClients, id: str, state: State) -> None:
    days = state.get("recoveryWindowInDays", 30)
    how = {"RecoveryWindowInDays": days} if days else {"ForceDeleteWithoutRecovery": True}
    with not_found_on("ResourceNotFoundException"):
        cloud.secretsmanager.delete_secret(SecretId=id, **how)
    cloud.until_gone(lambda: _describe_secret(cloud, id), id)


def _retag_secret(cloud: RegionClients, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    if drop:
        cloud.secretsmanager.untag_resource(SecretId=id, TagKeys=drop)
    if put:
        cloud.secretsmanager.tag_resource(SecretId=id, Tags=tag_list(put))


SECRET = Resource(
    token="aws:secretsmanager/secret:Secret",
    props={
        "name": text(replaces=True),
        "description": text(),
        "kmsKeyId": text(),
        "policy": json_document(computed=True),
        "recoveryWindowInDays": integer(write_only=True, default=30),
        "forceOverwriteReplicaSecret": boolean(write_only=True, default=False),
    },
    outputs={"arn": text(aws="ARN")},
    create=_create_secret,
    apply=_apply_secret,
    read=_read_secret,
    update=_update_secret,
    delete=_delete_secret,
    retag=_retag_secret,
    autonamed="name",
)

RESOURCES = (SECRET,)
