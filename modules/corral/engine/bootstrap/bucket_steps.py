"""The state bucket: how to check and how to create it with each of its settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from corral.engine.bootstrap.step import Blocked, BootstrapTarget, Clients, Step
from corral.model.bucket_owner import ANY_OWNER
from corral.model.partitions import partition_of
from corral.plan.iam.iam_policies import tls_only

OLD_VERSIONS_DAYS = 90  # states are small, and a quarter is long enough to notice a lost one
UPLOADS_DAYS = 7  # S3's advice for abandoned uploads
RULE = "corral-old-states"
FOREIGN = "belongs to another account than {account}: do not use it - choose another name with --name"
_PRIVATE = dict.fromkeys(("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True)


def bucket_location(region: str) -> dict[str, dict[str, str]]:
    """The arguments of CreateBucket for the region; us-east-1 must not be named.

    Source: S3 API, CreateBucket, LocationConstraint.
    """
    return {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}


def _has_bucket(client: Clients, target: BootstrapTarget) -> bool:
    s3 = client("s3")
    try:
        s3.head_bucket(Bucket=target.bucket)
    except s3.exceptions.ClientError as error:
        if error.response["Error"]["Code"] == "403" and _is_open(s3, target):
            raise Blocked(FOREIGN.format(account=target.account)) from None
        raise
    return True


def _is_open(s3: Any, target: BootstrapTarget) -> bool:
    """Whether the bucket is open to these credentials. If it is closed, S3 answers as for a missing permission."""
    try:
        s3.head_bucket(Bucket=target.bucket, ExpectedBucketOwner=ANY_OWNER)
    except s3.exceptions.ClientError:
        return False
    return True


def _create_bucket(client: Clients, target: BootstrapTarget) -> bool:
    s3 = client("s3")
    try:
        s3.create_bucket(Bucket=target.bucket, **bucket_location(target.region))
    except s3.exceptions.BucketAlreadyOwnedByYou:
        return False
    return True


def _has_versioning(client: Clients, target: BootstrapTarget) -> bool:
    return bool(client("s3").get_bucket_versioning(Bucket=target.bucket).get("Status") == "Enabled")


def _enable_versioning(client: Clients, target: BootstrapTarget) -> bool:
    client("s3").put_bucket_versioning(Bucket=target.bucket, VersioningConfiguration={"Status": "Enabled"})
    return True


def _has_encryption(client: Clients, target: BootstrapTarget) -> bool:
    found = client("s3").get_bucket_encryption(Bucket=target.bucket)["ServerSideEncryptionConfiguration"]
    return bool(found["Rules"])


def _enable_encryption(client: Clients, target: BootstrapTarget) -> bool:
    # The secrets in the states are encrypted with the KMS key.
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    client("s3").put_bucket_encryption(Bucket=target.bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})
    return True


def _is_private(client: Clients, target: BootstrapTarget) -> bool:
    found = client("s3").get_public_access_block(Bucket=target.bucket)["PublicAccessBlockConfiguration"]
    return bool(found == _PRIVATE)


def _block_public_access(client: Clients, target: BootstrapTarget) -> bool:
    client("s3").put_public_access_block(Bucket=target.bucket, PublicAccessBlockConfiguration=_PRIVATE)
    return True


def _requires_tls(client: Clients, target: BootstrapTarget) -> bool:
    return bool(_tls_statements(target)[0] in _statements(client, target))


def _require_tls(client: Clients, target: BootstrapTarget) -> bool:
    s3 = client("s3")
    try:
        there = _statements(client, target)
    except s3.exceptions.ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchBucketPolicy":
            raise
        there = []
    document = {"Version": "2012-10-17", "Statement": [*there, *_tls_statements(target)]}
    s3.put_bucket_policy(Bucket=target.bucket, Policy=json.dumps(document))
    return True


def _tls_statements(target: BootstrapTarget) -> list[Any]:
    return [tls_only(f"arn:{partition_of(target.region).name}:s3:::{target.bucket}")]


def _statements(client: Clients, target: BootstrapTarget) -> list[Any]:
    found = json.loads(client("s3").get_bucket_policy(Bucket=target.bucket)["Policy"])["Statement"]
    return found if isinstance(found, list) else [found]


def _has_expiry(client: Clients, target: BootstrapTarget) -> bool:
    return any("NoncurrentVersionExpiration" in rule for rule in _rules(client, target))


def _enable_expiry(client: Clients, target: BootstrapTarget) -> bool:
    s3 = client("s3")
    try:
        there = _rules(client, target)
    except s3.exceptions.ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchLifecycleConfiguration":
            raise
        there = []
    rule = {
        "ID": RULE,
        "Status": "Enabled",
        "Filter": {"Prefix": ""},
        "NoncurrentVersionExpiration": {"NoncurrentDays": OLD_VERSIONS_DAYS},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": UPLOADS_DAYS},
    }
    s3.put_bucket_lifecycle_configuration(Bucket=target.bucket, LifecycleConfiguration={"Rules": [*there, rule]})
    return True


def _rules(client: Clients, target: BootstrapTarget) -> list[Any]:
    return list(client("s3").get_bucket_lifecycle_configuration(Bucket=target.bucket)["Rules"])


def _bucket_step(key: str, what: str, look: Callable[..., bool], make: Callable[..., bool]) -> Step:
    return Step(key=key, description=what, service="s3", exists=look, create=make, needs="bucket")


BUCKET_STEPS = (
    Step(key="bucket", description="bucket {bucket}", service="s3", exists=_has_bucket, create=_create_bucket),
    _bucket_step("private", "public access blocked", _is_private, _block_public_access),
    _bucket_step("versions", "versioning", _has_versioning, _enable_versioning),
    _bucket_step("encryption", "encryption", _has_encryption, _enable_encryption),
    _bucket_step("tls", "TLS required", _requires_tls, _require_tls),
    _bucket_step("lifecycle", f"old versions expire after {OLD_VERSIONS_DAYS} days", _has_expiry, _enable_expiry),
)
