"""The KMS key of the secrets in the states: how to check and how to create it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from corral.engine.bootstrap.step import Blocked, BootstrapTarget, Clients, Outdated, Step
from corral.model.partitions import partition_of
from corral.model.tags import STATE_TAG

# KMS may not find a new key or alias for some seconds. Source: KMS developer guide, "AWS KMS eventual consistency".
FOUND_WITHIN_S, PAUSE_S = 60.0, 1.0


def _has_key(client: Clients, target: BootstrapTarget) -> bool:
    kms = client("kms")
    try:
        found = kms.describe_key(KeyId=target.alias)["KeyMetadata"]
    except kms.exceptions.NotFoundException:
        if others := [f"{key} {problem}" for key, problem in _tagged_keys(client, target) if problem]:
            text = f"has the tag {STATE_TAG} and is not used; find out who made it"
            raise Outdated("; ".join(f"key {one}: it {text}" for one in others)) from None
        return False
    if found["KeyState"] == "PendingDeletion":
        raise Blocked(
            f"{found['KeyId']} is scheduled for deletion; `aws kms cancel-key-deletion --key-id ...` cancels that"
        )
    if found["KeyState"] != "Enabled":
        raise Blocked(f"{found['KeyId']} is {found['KeyState']}; `aws kms enable-key --key-id ...` enables it")
    return True


def _create_key(client: Clients, target: BootstrapTarget) -> bool:
    """Creates the key and its alias; reuses a key that an interrupted run left without an alias.

    Whoever may create and tag keys could leave one, too: only a key as this step makes it is reused.
    """
    kms = client("kms")
    left = next((key for key, problem in _tagged_keys(client, target) if not problem), None)
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


def _tagged_keys(client: Clients, target: BootstrapTarget) -> Iterator[tuple[str, str]]:
    """The usable keys with our tag and without an alias, each with what differs from a key that was made here."""
    kms, tagging = client("kms"), client("resourcegroupstaggingapi")
    mine = [{"Key": STATE_TAG, "Values": [target.name]}]
    tagged = tagging.get_resources(TagFilters=mine, ResourceTypeFilters=["kms:key"])["ResourceTagMappingList"]
    for arn in sorted(one["ResourceARN"] for one in tagged):
        found = kms.describe_key(KeyId=arn)["KeyMetadata"]
        if found["KeyState"] == "Enabled" and not kms.list_aliases(KeyId=arn)["Aliases"]:
            yield str(arn.rpartition("/")[2]), _difference(kms, target, found)


def _difference(kms: Any, target: BootstrapTarget, key: Mapping[str, Any]) -> str:
    """How a key differs from one that was made here: who else can use it, or has its material. Empty if not at all.

    KMS gives a key without a policy one that leaves everything to the account's IAM. Source: KMS Developer Guide,
    "Default key policy".
    """
    made = (key.get("Origin"), key.get("KeySpec"), key.get("KeyUsage"), bool(key.get("MultiRegion")))
    if made != ("AWS_KMS", "SYMMETRIC_DEFAULT", "ENCRYPT_DECRYPT", False):
        return "is of another kind, has imported material or replicas"
    policy = json.loads(kms.get_key_policy(KeyId=key["KeyId"], PolicyName="default")["Policy"])
    allowed = [{name: value for name, value in one.items() if name != "Sid"} for one in policy["Statement"]]
    root = f"arn:{partition_of(target.region).name}:iam::{target.account}:root"
    if allowed != [{"Effect": "Allow", "Principal": {"AWS": root}, "Action": "kms:*", "Resource": "*"}]:
        return "has a policy of its own"
    return "has grants" if kms.list_grants(KeyId=key["KeyId"])["Grants"] else ""


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
