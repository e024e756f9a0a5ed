"""S3 buckets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import Gone, Refused, absence
from corral.box.provider.resource import Resource, State
from corral.box.provider.shapes import (
    flag,
    text,
)
from corral.box.provider.translate import tag_list, tag_map

FIRST_REGION = "us-east-1"  # the one that CreateBucket does not let be named
# AWS General Reference, Amazon S3 endpoints and quotas, website endpoints
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
        "tagsAll": tag_map(setting(cloud.s3.get_bucket_tagging, id, "TagSet")),
    }


def setting(get: Callable[..., Mapping[str, Any]], bucket: str, key: str) -> Any:
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
        "objectLockEnabled": flag(kept=True, replaces=True, computed=True),
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

RESOURCES = (BUCKET,)
