"""Settings of S3 buckets, each a resource of its own with the bucket's name as id."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import Gone, absence
from corral.box.provider.resource import Change, Resource, State
from corral.box.provider.shapes import (
    Prop,
    block,
    blocks,
    blockset,
    document,
    flag,
    text,
    whole,
)
from corral.box.provider.tables.buckets import NO_SETTING, setting
from corral.box.provider.translate import record, request

Put = Callable[[Cloud, str, State], None]
Get = Callable[[Cloud, str], State | None]
Drop = Callable[[Cloud, str], None]


def _setting_of_bucket(name: str, props: Mapping[str, Prop], put: Put, get: Get, drop: Drop) -> Resource:
    """A resource that is a setting of a bucket and has its name as id."""

    def create(cloud: Cloud, inputs: State) -> str:
        put(cloud, inputs["bucket"], inputs)
        return str(inputs["bucket"])

    def read(cloud: Cloud, id: str, known: State) -> State:
        with absence("NoSuchBucket"):
            found = get(cloud, id)
        if not found:
            raise Gone(f"{id} has none")
        return {"bucket": id, **found}

    def update(cloud: Cloud, change: Change) -> None:
        put(cloud, change.id, change.new)

    def delete(cloud: Cloud, id: str, state: State) -> None:
        with absence("NoSuchBucket", *NO_SETTING):
            drop(cloud, id)

    return Resource(
        token=f"aws:s3/{name[0].lower()}{name[1:]}:{name}",
        props={"bucket": text(required=True, replaces=True), **props},
        create=create,
        read=read,
        update=update,
        delete=delete,
    )


def _put_versioning(cloud: Cloud, bucket: str, inputs: State) -> None:
    asked = request(VERSIONING, inputs["versioningConfiguration"])
    cloud.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=asked)


def _get_versioning(cloud: Cloud, bucket: str) -> State | None:
    found = cloud.s3.get_bucket_versioning(Bucket=bucket)
    return {"versioningConfiguration": record(VERSIONING, found)} if found.get("Status") else None


def _drop_versioning(cloud: Cloud, bucket: str) -> None:
    cloud.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})


def _put_public_access(cloud: Cloud, bucket: str, inputs: State) -> None:
    asked = {name[0].upper() + name[1:]: inputs.get(name, False) for name in PUBLIC_ACCESS}
    cloud.s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=asked)


def _get_public_access(cloud: Cloud, bucket: str) -> State | None:
    found = setting(cloud.s3.get_public_access_block, bucket, "PublicAccessBlockConfiguration")
    return record(PUBLIC_ACCESS, found) if found else None


def _put_encryption(cloud: Cloud, bucket: str, inputs: State) -> None:
    rules = request({"rules": ENCRYPTION["rules"]}, inputs)
    cloud.s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration=rules)


def _get_encryption(cloud: Cloud, bucket: str) -> State | None:
    found = setting(cloud.s3.get_bucket_encryption, bucket, "ServerSideEncryptionConfiguration")
    return record(ENCRYPTION, found) if found else None


def _put_policy(cloud: Cloud, bucket: str, inputs: State) -> None:
    cloud.s3.put_bucket_policy(Bucket=bucket, Policy=inputs["policy"])


def _get_policy(cloud: Cloud, bucket: str) -> State | None:
    found = setting(cloud.s3.get_bucket_policy, bucket, "Policy")
    return {"policy": found} if found else None


def _put_lifecycle(cloud: Cloud, bucket: str, inputs: State) -> None:
    rules = [request(LIFECYCLE_RULE, rule) for rule in inputs.get("rules") or []]
    for rule in rules:
        rule["Filter"] = rule.get("Filter") or {"Prefix": ""}  # S3 wants one, if only to say: everything
    cloud.s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": rules})


def _get_lifecycle(cloud: Cloud, bucket: str) -> State | None:
    found = setting(cloud.s3.get_bucket_lifecycle_configuration, bucket, "Rules")
    return {"rules": [record(LIFECYCLE_RULE, rule) for rule in found]} if found else None


def _put_ownership(cloud: Cloud, bucket: str, inputs: State) -> None:
    rules = {"Rules": [request(OWNERSHIP, inputs["rule"])]}
    cloud.s3.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls=rules)


def _get_ownership(cloud: Cloud, bucket: str) -> State | None:
    found = setting(cloud.s3.get_bucket_ownership_controls, bucket, "OwnershipControls")
    return {"rule": record(OWNERSHIP, found["Rules"][0])} if found else None


VERSIONING: Mapping[str, Prop] = {"status": text(required=True), "mfaDelete": text(computed=True, aws="MFADelete")}
PUBLIC_ACCESS: Mapping[str, Prop] = {
    "blockPublicAcls": flag(default=False),
    "blockPublicPolicy": flag(default=False),
    "ignorePublicAcls": flag(default=False),
    "restrictPublicBuckets": flag(default=False),
}
ENCRYPTION: Mapping[str, Prop] = {
    "rules": blockset(
        {
            "applyServerSideEncryptionByDefault": block(
                {"sseAlgorithm": text(required=True, aws="SSEAlgorithm"), "kmsMasterKeyId": text(aws="KMSMasterKeyID")},
            ),
            "bucketKeyEnabled": flag(),
        },
        required=True,
    )
}
LIFECYCLE_RULE: Mapping[str, Prop] = {
    "id": text(required=True, aws="ID"),
    "status": text(required=True),
    "filter": block({"prefix": text(computed=True)}, computed=True),
    "expiration": block({"days": whole(computed=True), "expiredObjectDeleteMarker": flag(computed=True)}),
    "abortIncompleteMultipartUpload": block({"daysAfterInitiation": whole()}),
    "noncurrentVersionExpiration": block(
        {"noncurrentDays": whole(required=True), "newerNoncurrentVersions": whole(computed=True)}
    ),
    "transitions": blockset({"days": whole(computed=True), "storageClass": text(required=True)}),
}
OWNERSHIP: Mapping[str, Prop] = {"objectOwnership": text(required=True)}

SETTINGS = (
    _setting_of_bucket(
        "BucketVersioning",
        {"versioningConfiguration": block(VERSIONING, required=True)},
        _put_versioning,
        _get_versioning,
        _drop_versioning,
    ),
    _setting_of_bucket(
        "BucketPublicAccessBlock",
        PUBLIC_ACCESS,
        _put_public_access,
        _get_public_access,
        lambda cloud, bucket: cloud.s3.delete_public_access_block(Bucket=bucket),
    ),
    _setting_of_bucket(
        "BucketServerSideEncryptionConfiguration",
        ENCRYPTION,
        _put_encryption,
        _get_encryption,
        lambda cloud, bucket: cloud.s3.delete_bucket_encryption(Bucket=bucket),
    ),
    _setting_of_bucket(
        "BucketPolicy",
        {"policy": document(required=True)},
        _put_policy,
        _get_policy,
        lambda cloud, bucket: cloud.s3.delete_bucket_policy(Bucket=bucket),
    ),
    _setting_of_bucket(
        "BucketLifecycleConfiguration",
        {"rules": blocks(LIFECYCLE_RULE, required=True)},
        _put_lifecycle,
        _get_lifecycle,
        lambda cloud, bucket: cloud.s3.delete_bucket_lifecycle(Bucket=bucket),
    ),
    _setting_of_bucket(
        "BucketOwnershipControls",
        {"rule": block(OWNERSHIP, required=True)},
        _put_ownership,
        _get_ownership,
        lambda cloud, bucket: cloud.s3.delete_bucket_ownership_controls(Bucket=bucket),
    ),
)

RESOURCES = SETTINGS
