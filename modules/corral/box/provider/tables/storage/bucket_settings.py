"""Settings of S3 buckets: each is a separate resource, whose id is the bucket's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, to_request
from corral.box.provider.property_schema import (
    Prop,
    block,
    block_list,
    block_set,
    boolean,
    integer,
    json_document,
    text,
)
from corral.box.provider.provider_errors import NotFound, not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State
from corral.box.provider.tables.storage.buckets import NO_SETTING, setting

Put = Callable[[RegionClients, str, State], None]
Get = Callable[[RegionClients, str], State | None]
Drop = Callable[[RegionClients, str], None]


def _setting_of_bucket(name: str, props: Mapping[str, Prop], put: Put, get: Get, drop: Drop) -> Resource:
    """The resource of a bucket's setting."""

    def create(cloud: RegionClients, inputs: State) -> str:
        put(cloud, inputs["bucket"], inputs)
        return str(inputs["bucket"])

    def read(cloud: RegionClients, id: str, known: State) -> State:
        with not_found_on("NoSuchBucket"):
            found = get(cloud, id)
        if not found:
            raise NotFound(f"bucket {id} has no such setting")
        return {"bucket": id, **found}

    def update(cloud: RegionClients, change: ResourceUpdate) -> None:
        put(cloud, change.id, change.new)

    def delete(cloud: RegionClients, id: str, state: State) -> None:
        with not_found_on("NoSuchBucket", *NO_SETTING):
            drop(cloud, id)

    return Resource(
        token=f"aws:s3/{name[0].lower()}{name[1:]}:{name}",
        props={"bucket": text(required=True, replaces=True), **props},
        create=create,
        read=read,
        update=update,
        delete=delete,
    )


def _put_versioning(cloud: RegionClients, bucket: str, inputs: State) -> None:
    request = to_request(VERSIONING, inputs["versioningConfiguration"])
    cloud.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=request)


def _get_versioning(cloud: RegionClients, bucket: str) -> State | None:
    found = cloud.s3.get_bucket_versioning(Bucket=bucket)
    return {"versioningConfiguration": from_response(VERSIONING, found)} if found.get("Status") else None


def _drop_versioning(cloud: RegionClients, bucket: str) -> None:
    cloud.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})


def _put_public_access(cloud: RegionClients, bucket: str, inputs: State) -> None:
    request = {name[0].upper() + name[1:]: inputs.get(name, False) for name in PUBLIC_ACCESS}
    cloud.s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=request)


def _get_public_access(cloud: RegionClients, bucket: str) -> State | None:
    found = setting(cloud.s3.get_public_access_block, bucket, "PublicAccessBlockConfiguration")
    return from_response(PUBLIC_ACCESS, found) if found else None


def _put_encryption(cloud: RegionClients, bucket: str, inputs: State) -> None:
    rules = to_request({"rules": ENCRYPTION["rules"]}, inputs)
    cloud.s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration=rules)


def _get_encryption(cloud: RegionClients, bucket: str) -> State | None:
    found = setting(cloud.s3.get_bucket_encryption, bucket, "ServerSideEncryptionConfiguration")
    return from_response(ENCRYPTION, found) if found else None


def _put_policy(cloud: RegionClients, bucket: str, inputs: State) -> None:
    cloud.s3.put_bucket_policy(Bucket=bucket, Policy=inputs["policy"])


def _get_policy(cloud: RegionClients, bucket: str) -> State | None:
    found = setting(cloud.s3.get_bucket_policy, bucket, "Policy")
    return {"policy": found} if found else None


def _put_lifecycle(cloud: RegionClients, bucket: str, inputs: State) -> None:
    rules = [to_request(LIFECYCLE_RULE, rule) for rule in inputs.get("rules") or []]
    for rule in rules:
        rule["Filter"] = rule.get("Filter") or {"Prefix": ""}  # S3 requires a filter; this one matches all objects
    cloud.s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": rules})


def _get_lifecycle(cloud: RegionClients, bucket: str) -> State | None:
    found = setting(cloud.s3.get_bucket_lifecycle_configuration, bucket, "Rules")
    return {"rules": [from_response(LIFECYCLE_RULE, rule) for rule in found]} if found else None


def _put_ownership(cloud: RegionClients, bucket: str, inputs: State) -> None:
    rules = {"Rules": [to_request(OWNERSHIP, inputs["rule"])]}
    cloud.s3.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls=rules)


def _get_ownership(cloud: RegionClients, bucket: str) -> State | None:
    found = setting(cloud.s3.get_bucket_ownership_controls, bucket, "OwnershipControls")
    return {"rule": from_response(OWNERSHIP, found["Rules"][0])} if found else None


VERSIONING: Mapping[str, Prop] = {"status": text(required=True), "mfaDelete": text(computed=True, aws="MFADelete")}
PUBLIC_ACCESS: Mapping[str, Prop] = {
    "blockPublicAcls": boolean(default=False),
    "blockPublicPolicy": boolean(default=False),
    "ignorePublicAcls": boolean(default=False),
    "restrictPublicBuckets": boolean(default=False),
}
ENCRYPTION: Mapping[str, Prop] = {
    "rules": block_set(
        {
            "applyServerSideEncryptionByDefault": block(
                {"sseAlgorithm": text(required=True, aws="SSEAlgorithm"), "kmsMasterKeyId": text(aws="KMSMasterKeyID")},
            ),
            "bucketKeyEnabled": boolean(),
        },
        required=True,
    )
}
LIFECYCLE_RULE: Mapping[str, Prop] = {
    "id": text(required=True, aws="ID"),
    "status": text(required=True),
    "filter": block({"prefix": text(computed=True)}, computed=True),
    "expiration": block({"days": integer(computed=True), "expiredObjectDeleteMarker": boolean(computed=True)}),
    "abortIncompleteMultipartUpload": block({"daysAfterInitiation": integer()}),
    "noncurrentVersionExpiration": block(
        {"noncurrentDays": integer(required=True), "newerNoncurrentVersions": integer()}
    ),
    "transitions": block_set({"days": integer(computed=True), "storageClass": text(required=True)}),
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
        {"policy": json_document(required=True)},
        _put_policy,
        _get_policy,
        lambda cloud, bucket: cloud.s3.delete_bucket_policy(Bucket=bucket),
    ),
    _setting_of_bucket(
        "BucketLifecycleConfiguration",
        {"rules": block_list(LIFECYCLE_RULE, required=True)},
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
