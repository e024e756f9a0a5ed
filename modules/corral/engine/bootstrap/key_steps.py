"""The KMS key of the secrets in the states: how to check and how to create it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from corral.engine.bootstrap.step import Blocked, BootstrapTarget, Clients, Step
from corral.model.tags import STATE_TAG

# KMS may not find a new key or alias for some seconds. Source: KMS developer guide, "AWS KMS eventual consistency".
FOUND_WITHIN_S, PAUSE_S = 60.0, 1.0


def _has_key(client: Clients, target: BootstrapTarget) -> bool:
    found = client("kms").describe_key(KeyId=target.alias)["KeyMetadata"]
    if found["KeyState"] == "PendingDeletion":
        raise Blocked(
            f"{found['KeyId']} is scheduled for deletion; `aws kms cancel-key-deletion --key-id ...` cancels that"
        )
    if found["KeyState"] != "Enabled":
        raise Blocked(f"{found['KeyId']} is {found['KeyState']}; `aws kms enable-key --key-id ...` enables it")
    return True


def _create_key(client: Clients, target: BootstrapTarget) -> bool:
    """Creates the key and its alias; reuses a key that an interrupted run left without an alias."""
    kms = client("kms")
    left = _key_without_alias(client, target)
    key = (
        left
        or kms.create_key(
            Description=f"Secrets in the Pulumi states of {target.bucket}",
            Tags=[{"TagKey": STATE_TAG, "TagValue": target.name}],
        )["KeyMetadata"]["KeyId"]
    )
    try:
        _once_found(kms, lambda: kms.create_alias(AliasName=target.alias, TargetKeyId=key))
        is_ours = True
    except kms.exceptions.AlreadyExistsException:
        is_ours = False
    aliased = _once_found(kms, lambda: kms.describe_key(KeyId=target.alias))["KeyMetadata"]["KeyId"]
    if aliased != key:
        kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=7)  # nothing was ever encrypted with it
    return is_ours


def _once_found(kms: Any, call: Callable[[], Any]) -> Any:
    """The answer of the call as soon as KMS finds what it names."""
    end = time.monotonic() + FOUND_WITHIN_S
    while True:
        try:
            return call()
        except kms.exceptions.NotFoundException:
            if time.monotonic() >= end:
                raise
            time.sleep(PAUSE_S)


def _key_without_alias(client: Clients, target: BootstrapTarget) -> str | None:
    """A usable key with our tag and without an alias."""
    kms, tagging = client("kms"), client("resourcegroupstaggingapi")
    mine = [{"Key": STATE_TAG, "Values": [target.name]}]
    tagged = tagging.get_resources(TagFilters=mine, ResourceTypeFilters=["kms:key"])["ResourceTagMappingList"]
    for arn in sorted(one["ResourceARN"] for one in tagged):
        is_usable = kms.describe_key(KeyId=arn)["KeyMetadata"]["KeyState"] == "Enabled"
        if is_usable and not kms.list_aliases(KeyId=arn)["Aliases"]:
            return str(arn.rpartition("/")[2])
    return None


def _has_rotation(client: Clients, target: BootstrapTarget) -> bool:
    kms = client("kms")
    return bool(kms.get_key_rotation_status(KeyId=_key_id(kms, target))["KeyRotationEnabled"])


def _enable_rotation(client: Clients, target: BootstrapTarget) -> bool:
    kms = client("kms")
    kms.enable_key_rotation(KeyId=_key_id(kms, target))
    return True


def _key_id(kms: Any, target: BootstrapTarget) -> str:
    """The key's id: calls about rotation accept no alias. Source: KMS API, EnableKeyRotation, KeyId"""
    return str(kms.describe_key(KeyId=target.alias)["KeyMetadata"]["KeyId"])


KEY_STEPS = (
    Step(key="key", description="key {alias}", service="kms", exists=_has_key, create=_create_key),
    Step(
        key="rotation",
        description="yearly rotation",
        service="kms",
        exists=_has_rotation,
        create=_enable_rotation,
        needs="key",
    ),
)
