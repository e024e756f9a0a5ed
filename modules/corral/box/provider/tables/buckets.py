"""S3: buckets, each of their settings as a resource of its own, and objects."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import Gone, Refused, absence
from corral.box.provider.resource import Change, Resource, State
from corral.box.provider.shapes import (
    Prop,
    asset,
    block,
    blocks,
    blockset,
    document,
    flag,
    text,
    texts,
    whole,
)
from corral.box.provider.translate import record, request, tag_list, tag_map

# --- buckets

FIRST_REGION = "us-east-1"  # the one that CreateBucket does not let be named
HOSTED_ZONES = {"us-east-1": "Z3AQBSTGFYJSTF", "us-east-2": "Z2O1EMRO9K5GLX", "us-west-2": "Z3BJ6K6RIION7M"}


def _create_bucket(cloud: Cloud, inputs: State) -> str:
    asked: dict[str, Any] = {"Bucket": inputs["bucket"]}
    if cloud.region != FIRST_REGION:
        asked["CreateBucketConfiguration"] = {"LocationConstraint": cloud.region}
    if inputs.get("objectLockEnabled"):
        asked["ObjectLockEnabledForBucket"] = True
    elif _exists(cloud, inputs["bucket"]):  # in us-east-1, CreateBucket of one's own bucket succeeds
        raise Refused(f"CreateBucket BucketAlreadyOwnedByYou: {inputs['bucket']} exists already")
    cloud.s3.create_bucket(**asked)
    return str(inputs["bucket"])


def _exists(cloud: Cloud, bucket: str) -> bool:
    try:
        with absence("404", "NoSuchBucket"):
            cloud.s3.head_bucket(Bucket=bucket)
    except Gone:
        return False
    return True


def _settle_bucket(cloud: Cloud, id: str, inputs: State) -> None:
    tags = inputs.get("tagsAll") or {}
    if tags:
        cloud.s3.put_bucket_tagging(Bucket=id, Tagging={"TagSet": tag_list(tags)})
    else:
        cloud.s3.delete_bucket_tagging(Bucket=id)


def _retag_bucket(cloud: Cloud, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    """Nothing: the whole set is written by `settle`."""


def _read_bucket(cloud: Cloud, id: str, known: State) -> State:
    with absence("404", "NoSuchBucket"):
        cloud.s3.head_bucket(Bucket=id)
    region = cloud.s3.get_bucket_location(Bucket=id).get("LocationConstraint") or FIRST_REGION
    return {
        "bucket": id,
        "arn": f"arn:aws:s3:::{id}",
        "bucketDomainName": f"{id}.s3.amazonaws.com",
        "bucketRegionalDomainName": f"{id}.s3.{region}.amazonaws.com",
        "bucketRegion": region,
        "hostedZoneId": HOSTED_ZONES.get(region, ""),
        "tagsAll": tag_map(_setting(cloud.s3.get_bucket_tagging, id, "TagSet")),
    }


def _setting(get: Callable[..., Mapping[str, Any]], bucket: str, key: str) -> Any:
    """A setting of a bucket, or None where it was never made."""
    try:
        with absence(*NO_SETTING):
            return get(Bucket=bucket).get(key)
    except Gone:
        return None


def _delete_bucket(cloud: Cloud, id: str, state: State) -> None:
    with absence("NoSuchBucket"):
        if state.get("forceDestroy"):
            _empty(cloud, id)
        cloud.s3.delete_bucket(Bucket=id)


def _empty(cloud: Cloud, bucket: str) -> None:
    for page in cloud.s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
        for one in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]:
            cloud.s3.delete_object(Bucket=bucket, Key=one["Key"], VersionId=one["VersionId"])


NO_SETTING = (
    "NoSuchTagSet",
    "NoSuchBucketPolicy",
    "NoSuchLifecycleConfiguration",
    "NoSuchPublicAccessBlockConfiguration",
    "OwnershipControlsNotFoundError",
    "ServerSideEncryptionConfigurationNotFoundError",
)
BUCKET = Resource(
    token="aws:s3/bucket:Bucket",
    props={
        "bucket": text(replaces=True),
        "forceDestroy": flag(kept=True, default=False),
        "objectLockEnabled": flag(kept=True, replaces=True, default=False),
    },
    outputs={
        "arn": text(),
        "bucketDomainName": text(),
        "bucketRegionalDomainName": text(),
        "bucketRegion": text(),
        "hostedZoneId": text(),
    },
    create=_create_bucket,
    settle=_settle_bucket,
    read=_read_bucket,
    delete=_delete_bucket,
    retag=_retag_bucket,
    autonamed="bucket",
)

# --- settings of a bucket

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
    found = _setting(cloud.s3.get_public_access_block, bucket, "PublicAccessBlockConfiguration")
    return record(PUBLIC_ACCESS, found) if found else None


def _put_encryption(cloud: Cloud, bucket: str, inputs: State) -> None:
    rules = request({"rules": ENCRYPTION["rules"]}, inputs)
    cloud.s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration=rules)


def _get_encryption(cloud: Cloud, bucket: str) -> State | None:
    found = _setting(cloud.s3.get_bucket_encryption, bucket, "ServerSideEncryptionConfiguration")
    return record(ENCRYPTION, found) if found else None


def _put_policy(cloud: Cloud, bucket: str, inputs: State) -> None:
    cloud.s3.put_bucket_policy(Bucket=bucket, Policy=inputs["policy"])


def _get_policy(cloud: Cloud, bucket: str) -> State | None:
    found = _setting(cloud.s3.get_bucket_policy, bucket, "Policy")
    return {"policy": found} if found else None


def _put_lifecycle(cloud: Cloud, bucket: str, inputs: State) -> None:
    rules = [request(LIFECYCLE_RULE, rule) for rule in inputs.get("rules") or []]
    for rule in rules:
        rule["Filter"] = rule.get("Filter") or {"Prefix": ""}  # S3 wants one, if only to say: everything
    cloud.s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": rules})


def _get_lifecycle(cloud: Cloud, bucket: str) -> State | None:
    found = _setting(cloud.s3.get_bucket_lifecycle_configuration, bucket, "Rules")
    return {"rules": [record(LIFECYCLE_RULE, rule) for rule in found]} if found else None


def _put_ownership(cloud: Cloud, bucket: str, inputs: State) -> None:
    rules = {"Rules": [request(OWNERSHIP, inputs["rule"])]}
    cloud.s3.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls=rules)


def _get_ownership(cloud: Cloud, bucket: str) -> State | None:
    found = _setting(cloud.s3.get_bucket_ownership_controls, bucket, "OwnershipControls")
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
            "bucketKeyEnabled": flag(default=False),
        },
        required=True,
    )
}
LIFECYCLE_RULE: Mapping[str, Prop] = {
    "id": text(required=True, aws="ID"),
    "status": text(required=True),
    "filter": block({"prefix": text()}, computed=True),
    "expiration": block({"days": whole(), "expiredObjectDeleteMarker": flag(computed=True)}),
    "abortIncompleteMultipartUpload": block({"daysAfterInitiation": whole()}),
    "noncurrentVersionExpiration": block({"noncurrentDays": whole(required=True), "newerNoncurrentVersions": whole()}),
    "transitions": blocks({"days": whole(), "storageClass": text(required=True)}),
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

# --- objects

CONTENT = ("content", "contentBase64", "source", "sourceHash")


def _body(inputs: State) -> bytes:
    if inputs.get("contentBase64") is not None:
        return base64.b64decode(inputs["contentBase64"])
    source = inputs.get("source")
    if not isinstance(source, dict):
        return str(inputs.get("content") or "").encode()
    return source["text"].encode() if "text" in source else Path(source["path"]).read_bytes()


def _put_object(cloud: Cloud, inputs: State) -> str:
    asked = request(OBJECT.props, inputs, PUT)
    cloud.s3.put_object(Body=_body(inputs), **asked)
    return str(inputs["key"])


def _settle_object(cloud: Cloud, id: str, inputs: State) -> None:
    where = {"Bucket": inputs["bucket"], "Key": inputs["key"]}
    if tags := tag_list(inputs.get("tagsAll")):
        cloud.s3.put_object_tagging(**where, Tagging={"TagSet": tags})
    else:
        cloud.s3.delete_object_tagging(**where)


def _retag_object(cloud: Cloud, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    """Nothing: the whole set is written by `settle`."""


def _read_object(cloud: Cloud, id: str, known: State) -> State:
    bucket, key = known.get("bucket"), known.get("key")
    if not bucket or not key:  # an import says BUCKET/KEY
        bucket, _, key = id.removeprefix("s3://").partition("/")
    with absence("404", "NoSuchKey", "NoSuchBucket"):
        head = cloud.s3.head_object(Bucket=bucket, Key=key)
    tags = cloud.s3.get_object_tagging(Bucket=bucket, Key=key).get("TagSet")
    return {
        **record(OBJECT.state, head),
        "bucket": bucket,
        "key": key,
        "etag": head["ETag"].strip('"'),
        "storageClass": head.get("StorageClass", "STANDARD"),
        "arn": f"arn:aws:s3:::{bucket}/{key}",
        "tagsAll": tag_map(tags),
    }


def _update_object(cloud: Cloud, change: Change) -> None:
    if change.names - {"tags", "tagsAll", "forceDestroy", "overrideProvider"}:
        _put_object(cloud, change.new)


def _delete_object(cloud: Cloud, id: str, state: State) -> None:
    bucket, key = state["bucket"], state["key"]
    with absence("NoSuchBucket", "NoSuchKey"):
        for page in cloud.s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=key):
            for one in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]:
                if one["Key"] == key:
                    cloud.s3.delete_object(Bucket=bucket, Key=key, VersionId=one["VersionId"])


OBJECT = Resource(
    token="aws:s3/bucketObjectv2:BucketObjectv2",
    props={
        "bucket": text(required=True, replaces=True),
        "key": text(required=True, replaces=True),
        "content": text(kept=True),
        "contentBase64": text(kept=True),
        "source": asset(kept=True),
        "sourceHash": text(kept=True),
        "contentType": text(computed=True),
        "contentEncoding": text(),
        "contentDisposition": text(),
        "cacheControl": text(),
        "metadata": texts(),
        "serverSideEncryption": text(computed=True),
        "kmsKeyId": text(computed=True, aws="SSEKMSKeyId"),
        "bucketKeyEnabled": flag(computed=True),
        "storageClass": text(computed=True),
        "forceDestroy": flag(kept=True, default=False),
        "overrideProvider": block({"defaultTags": block({"tags": texts()})}, kept=True),
    },
    outputs={
        "arn": text(),
        "etag": text(changes_with=CONTENT),
        "versionId": text(changes_with=CONTENT),
    },
    create=_put_object,
    settle=_settle_object,
    read=_read_object,
    update=_update_object,
    delete=_delete_object,
    retag=_retag_object,
    identify=lambda state: str(state["key"]),
)
PUT = tuple(name for name in OBJECT.props if name not in {*CONTENT, "forceDestroy", "overrideProvider"})

RESOURCES = (BUCKET, *SETTINGS, OBJECT)
