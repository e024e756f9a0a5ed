"""What the account says of KMS keys: which ones a base, buckets and images have, and their state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from corral.inventory.things import BASE_TAG, KEEP_TAG
from corral.preflight.answers import Answers
from corral.preflight.buckets import linked
from corral.preflight.findings import Wanted
from corral.preflight.keys import SYMMETRIC, Facts, Key, Reach

_KEPT_WORD = "key"
_OPENS = frozenset({"kms:Decrypt", "kms:*", "*"})


def ask(answers: Answers, wanted: Wanted) -> Facts:
    """What each bucket and image is encrypted with, then a description and the policy of each key."""
    named = {**_of_buckets(answers, wanted), **_of_images(answers, wanted)}
    return Facts(
        kept=[_key(answers, id) for id in _kept(answers, wanted)],
        others={about: _key(answers, id) for about, id in named.items()},
    )


def reach_of(policy: Mapping[str, Any], account: str) -> Reach:
    """Whom the policy of a key of this account lets decrypt; the conditions of its statements are not judged."""
    principals = {
        str(one)
        for statement in _list(policy.get("Statement", ()))
        if statement.get("Effect") == "Allow" and _OPENS & set(_list(statement.get("Action", ())))
        for one in _principals(statement)
    }
    if "*" in principals or any(":role/identity-" in one for one in principals):
        return Reach.ROLES
    return Reach.ACCOUNT if {account, f"arn:aws:iam::{account}:root"} & principals else Reach.NOBODY


def _kept(answers: Answers, wanted: Wanted) -> list[str]:
    found = answers.every(
        "resourcegroupstaggingapi",
        "get_resources",
        "ResourceTagMappingList",
        TagFilters=[
            {"Key": BASE_TAG, "Values": [wanted.base.name]},
            {"Key": KEEP_TAG, "Values": [_KEPT_WORD]},
        ],
        ResourceTypeFilters=["kms"],
    )
    return sorted(str(one["ResourceARN"]) for one in found)


def _of_buckets(answers: Answers, wanted: Wanted) -> Mapping[str, str]:
    """The key of each bucket whose default encryption names one; a bucket that cannot be asked says none."""
    found = {}
    for name in linked(wanted.cluster):
        try:
            answer = answers.ask("s3", "get_bucket_encryption", Bucket=name)
        except ClientError:
            continue  # without a rule of its own, gone, or not to be seen: the buckets' own check tells
        for rule in answer["ServerSideEncryptionConfiguration"]["Rules"]:
            if id := rule.get("ApplyServerSideEncryptionByDefault", {}).get("KMSMasterKeyID"):
                found[f"s3://{name}"] = str(id)
    return found


def _of_images(answers: Answers, wanted: Wanted) -> Mapping[str, str]:
    """The key of the root snapshot of each image that the spec names by its id."""
    found: dict[str, str] = {}
    for id in sorted({image.image_id for image in wanted.cluster.images.values() if image.image_id}):
        for image in answers.named("ec2", "describe_images", "Images", ImageIds=[id]):
            for snapshot in _encrypted(image):
                held = answers.named("ec2", "describe_snapshots", "Snapshots", SnapshotIds=[snapshot])
                found.update((id, str(one["KmsKeyId"])) for one in held if one.get("KmsKeyId"))
    return found


def _encrypted(image: Mapping[str, Any]) -> list[str]:
    disks = [disk["Ebs"] for disk in image.get("BlockDeviceMappings", ()) if "Ebs" in disk]
    return [str(disk["SnapshotId"]) for disk in disks if disk.get("Encrypted") and disk.get("SnapshotId")]


def _key(answers: Answers, id: str) -> Key:
    region = id.split(":")[3] if id.startswith("arn:") else None
    try:
        found = answers.ask("kms", "describe_key", region, KeyId=id)["KeyMetadata"]
    except ClientError as error:
        is_missing = error.response["Error"]["Code"] == "NotFoundException"
        return Key(id=id, state="" if is_missing else None)
    arn = str(found["Arn"])
    return Key(
        id=str(found["KeyId"]),
        state=str(found["KeyState"]),
        spec=str(found.get("KeySpec", found.get("CustomerMasterKeySpec", SYMMETRIC))),
        is_aws=found.get("KeyManager") == "AWS",
        region=arn.split(":")[3],
        reach=_reach(answers, region, arn),
    )


def _reach(answers: Answers, region: str | None, arn: str) -> Reach | None:
    try:
        text = answers.ask("kms", "get_key_policy", region, KeyId=arn, PolicyName="default")["Policy"]
        account = str(answers.ask("sts", "get_caller_identity")["Account"])
    except ClientError:
        return None
    return reach_of(json.loads(text), account)


def _principals(statement: Mapping[str, Any]) -> Sequence[Any]:
    principal = statement.get("Principal", {})
    return ["*"] if principal == "*" else _list(principal.get("AWS", ()))


def _list(value: Any) -> Sequence[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
