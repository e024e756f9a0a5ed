"""Secrets Manager: the secrets, never their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import Gone, absence
from corral.box.provider.resource import Change, Resource, State
from corral.box.provider.shapes import document, flag, text, whole
from corral.box.provider.translate import record, request, tag_list, tag_map


def _create_secret(cloud: Cloud, inputs: State) -> str:
    asked = request(SECRET.props, inputs, ("name", "description", "kmsKeyId"))
    return str(cloud.secretsmanager.create_secret(**asked, Tags=tag_list(inputs.get("tagsAll")))["ARN"])


def _settle_secret(cloud: Cloud, id: str, inputs: State) -> None:
    if inputs.get("policy"):
        cloud.secretsmanager.put_resource_policy(SecretId=id, ResourcePolicy=inputs["policy"])


def _describe_secret(cloud: Cloud, id: str) -> Mapping[str, Any]:
    with absence("ResourceNotFoundException"):
        secret: Mapping[str, Any] = cloud.secretsmanager.describe_secret(SecretId=id)
    if secret.get("DeletedDate"):
        raise Gone(f"{id} is deleted")
    return secret


def _read_secret(cloud: Cloud, id: str, known: State) -> State:
    secret = _describe_secret(cloud, id)
    policy = cloud.secretsmanager.get_resource_policy(SecretId=id).get("ResourcePolicy")
    return {
        **record(SECRET.state, secret),
        "policy": policy,
        "arn": secret["ARN"],
        "tagsAll": tag_map(secret.get("Tags")),
    }


def _update_secret(cloud: Cloud, change: Change) -> None:
    if change.touches("description", "kmsKeyId"):
        asked = request(SECRET.props, change.new, ("description", "kmsKeyId"))
        cloud.secretsmanager.update_secret(SecretId=change.id, **{"Description": "", **asked})


def _delete_secret(cloud: Cloud, id: str, state: State) -> None:
    days = state.get("recoveryWindowInDays", 30)
    how = {"RecoveryWindowInDays": days} if days else {"ForceDeleteWithoutRecovery": True}
    with absence("ResourceNotFoundException"):
        cloud.secretsmanager.delete_secret(SecretId=id, **how)
    cloud.until_gone(lambda: _describe_secret(cloud, id), id)


def _retag_secret(cloud: Cloud, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
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
        "policy": document(computed=True),
        "recoveryWindowInDays": whole(kept=True, default=30),
        "forceOverwriteReplicaSecret": flag(kept=True, default=False),
    },
    outputs={"arn": text(aws="ARN")},
    create=_create_secret,
    settle=_settle_secret,
    read=_read_secret,
    update=_update_secret,
    delete=_delete_secret,
    retag=_retag_secret,
    autonamed="name",
)

RESOURCES = (SECRET,)
