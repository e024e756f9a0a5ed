"""Whether the KMS keys of a retained base, of data buckets and of own images can be used.

A base creates its own key, which encrypts everything of corral's. Other keys come with what a spec names.
Sources: KMS Developer Guide, "Key states of AWS KMS keys", "Key policies"; S3 User Guide, "Using SSE-KMS"; EC2 User
Guide, "Use encryption with EBS-backed AMIs".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from botocore.exceptions import ClientError

from corral.model.bucket_owner import ANY_OWNER
from corral.model.partitions import partition_of
from corral.model.tags import BASE_TAG, KEEP_KEY, KEEP_TAG
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.bucket_check import linked
from corral.preflight.preflight_findings import FindingBuilder, PreflightFinding, PreflightRequest

_FINDINGS = FindingBuilder(check="keys")
_USABLE, _PENDING, _DISABLED = "Enabled", "PendingDeletion", "Disabled"
SYMMETRIC = "SYMMETRIC_DEFAULT"
_OPENS = frozenset({"kms:Decrypt", "kms:*", "*"})


class Reach(StrEnum):
    """Who may decrypt under a key's policy: corral's roles, principals that IAM policies allow, or nobody here."""

    ROLES = "roles"
    ACCOUNT = "account"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key as KMS describes it. `state`: "" if it does not exist, None if these credentials may not read it.

    `reach`: None if its policy may not be read.
    """

    id: str
    state: str | None
    spec: str = SYMMETRIC
    is_aws: bool = False
    region: str = ""
    reach: Reach | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFacts:
    """The retained keys of the base, and the keys of buckets and images by what they encrypt."""

    retained: Sequence[Key] = ()
    others: Mapping[str, Key] = field(default_factory=dict)


def fetch(aws: AwsQueryCache, request: PreflightRequest) -> KeyFacts:
    """The keys of buckets and images, then the description and policy of each key."""
    named = {**_of_buckets(aws, request), **_of_images(aws, request)}
    return KeyFacts(
        retained=[_key(aws, id) for id in _retained(aws, request)],
        others={about: _key(aws, id) for about, id in named.items()},
    )


def evaluate(request: PreflightRequest, facts: KeyFacts) -> Iterator[PreflightFinding]:
    """The findings for the base's key, then for each key of a bucket or image."""
    about = f"base {request.base.name}"
    if not facts.retained:
        yield _FINDINGS.ok(about, "creates its key")
    for key in facts.retained:
        problems = [*_state(about, key), *_base_policy(about, key, request.cluster.region)]
        yield from problems or [_FINDINGS.ok(about, f"its retained key {key.id} is usable")]
    for about, key in facts.others.items():
        problems = [*_state(about, key), *_own_policy(about, key)]
        yield from problems or [_FINDINGS.ok(about, f"its key {key.id} is usable")]


def _state(about: str, key: Key) -> Iterator[PreflightFinding]:
    name = f"its key {key.id}"
    if key.state is None:
        fix = "allow kms:DescribeKey on it, or ask its owner whether it is enabled"
        yield _FINDINGS.warn(about, f"{name} cannot be read with these credentials", fix)
    elif key.state == "":
        yield _FINDINGS.fail(
            about, f"{name} does not exist; what it encrypted cannot be read", "use another bucket or image"
        )
    elif key.state == _PENDING:
        saved = f"`aws kms cancel-key-deletion --key-id {key.id}`, then `aws kms enable-key --key-id {key.id}`"
        yield _FINDINGS.fail(about, f"{name} is pending deletion", saved)
    elif key.state == _DISABLED:
        yield _FINDINGS.fail(about, f"{name} is disabled", f"`aws kms enable-key --key-id {key.id}`")
    elif key.state != _USABLE:
        yield _FINDINGS.fail(about, f"{name} is in the state {key.state}", "check the KMS console")
    elif key.spec != SYMMETRIC:
        text = f"{name} has the spec {key.spec}; AWS encrypts storage only with symmetric keys"
        yield _FINDINGS.fail(about, text, "use another key")


def _base_policy(about: str, key: Key, region: str) -> Iterator[PreflightFinding]:
    if key.region and key.region != region:
        text = f"its retained key {key.id} is in {key.region}, but the base is in {region}"
        yield _FINDINGS.fail(about, text, f"remove the tag {KEEP_TAG} from it")
    if key.reach is Reach.NOBODY:
        text = f"the policy of its key {key.id} lets no role of the account decrypt"
        yield _FINDINGS.fail(about, text, f"allow kms:* to Principal arn:{partition_of(region).name}:iam::ACCOUNT:root")


def _own_policy(about: str, key: Key) -> Iterator[PreflightFinding]:
    """corral's roles are allowed only the base's key, so the policy of any other key must allow them."""
    if key.is_aws or not key.state:
        return
    fix = "allow the account's roles corral/identity-* in the key's policy, or encrypt with another key"
    if key.reach is None:
        yield _FINDINGS.warn(about, f"the policy of its key {key.id} cannot be read; it must allow corral's roles", fix)
    elif key.reach is Reach.NOBODY:
        yield _FINDINGS.fail(about, f"the policy of its key {key.id} lets nobody in this account decrypt", fix)
    elif key.reach is Reach.ACCOUNT:
        text = f"the policy of its key {key.id} delegates to IAM, but corral's roles are allowed only the base's key"
        yield _FINDINGS.warn(about, text, fix)


def reach_of(policy: Mapping[str, Any], account: str) -> Reach:
    """Who may decrypt under the policy of a key of this account; conditions of statements are ignored."""
    principals = {
        str(one)
        for statement in _list(policy.get("Statement", ()))
        if statement.get("Effect") == "Allow" and _OPENS & set(_list(statement.get("Action", ())))
        for one in _principals(statement)
    }
    if "*" in principals or any(":role/corral/identity-" in one for one in principals):
        return Reach.ROLES
    root = any(one == account or one.endswith(f":iam::{account}:root") for one in principals)
    return Reach.ACCOUNT if root else Reach.NOBODY


def _retained(aws: AwsQueryCache, request: PreflightRequest) -> list[str]:
    found = aws.list_all(
        "resourcegroupstaggingapi",
        "get_resources",
        "ResourceTagMappingList",
        TagFilters=[
            {"Key": BASE_TAG, "Values": [request.base.name]},
            {"Key": KEEP_TAG, "Values": [KEEP_KEY]},
        ],
        ResourceTypeFilters=["kms"],
    )
    return sorted(str(one["ResourceARN"]) for one in found)


def _of_buckets(aws: AwsQueryCache, request: PreflightRequest) -> Mapping[str, str]:
    """The key of each bucket with default encryption by a key; buckets that cannot be read are left out."""
    found = {}
    for name in linked(request.cluster):
        try:
            answer = aws.call("s3", "get_bucket_encryption", Bucket=name, ExpectedBucketOwner=ANY_OWNER)
        except ClientError:
            continue  # no rule, missing or not readable: the check of buckets reports it
        for rule in answer["ServerSideEncryptionConfiguration"]["Rules"]:
            if id := rule.get("ApplyServerSideEncryptionByDefault", {}).get("KMSMasterKeyID"):
                found[f"s3://{name}"] = str(id)
    return found


def _of_images(aws: AwsQueryCache, request: PreflightRequest) -> Mapping[str, str]:
    """The key of the root snapshot of each image that the spec names by its id."""
    found: dict[str, str] = {}
    for id in sorted({image.image_id for image in request.cluster.images.values() if image.image_id}):
        for image in aws.list_existing("ec2", "describe_images", "Images", ImageIds=[id]):
            for snapshot in _encrypted(image):
                held = aws.list_existing("ec2", "describe_snapshots", "Snapshots", SnapshotIds=[snapshot])
                found.update((id, str(one["KmsKeyId"])) for one in held if one.get("KmsKeyId"))
    return found


def _encrypted(image: Mapping[str, Any]) -> list[str]:
    disks = [disk["Ebs"] for disk in image.get("BlockDeviceMappings", ()) if "Ebs" in disk]
    return [str(disk["SnapshotId"]) for disk in disks if disk.get("Encrypted") and disk.get("SnapshotId")]


def _key(aws: AwsQueryCache, id: str) -> Key:
    region = id.split(":")[3] if id.startswith("arn:") else None
    try:
        found = aws.call("kms", "describe_key", region, KeyId=id)["KeyMetadata"]
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
        reach=_reach(aws, region, arn),
    )


def _reach(aws: AwsQueryCache, region: str | None, arn: str) -> Reach | None:
    try:
        text = aws.call("kms", "get_key_policy", region, KeyId=arn, PolicyName="default")["Policy"]
        account = str(aws.call("sts", "get_caller_identity")["Account"])
    except ClientError:
        return None
    return reach_of(json.loads(text), account)


def _principals(statement: Mapping[str, Any]) -> Sequence[Any]:
    principal = statement.get("Principal", {})
    return ["*"] if principal == "*" else _list(principal.get("AWS", ()))


def _list(value: Any) -> Sequence[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
