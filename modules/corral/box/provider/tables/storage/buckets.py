"""aws:s3:Bucket, with its tags."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import tag_list, tag_map
from corral.box.provider.property_schema import boolean, text
from corral.box.provider.provider_errors import NotFound, RequestRefused, not_found_on
from corral.box.provider.resource import Resource, State

FIRST_REGION = "us-east-1"  # CreateBucket refuses it as a location constraint
# Source: AWS General Reference, Amazon S3 endpoints and quotas, website endpoints
HOSTED_ZONES = {"us-east-1": "Z3AQBSTGFYJSTF", "us-east-2": "Z2O1EMRO9K5GLX", "us-west-2": "Z3BJ6K6RIION7M"}


def _create_bucket(cloud: RegionClients, inputs: State) -> str:
    request: dict[str, Any] = {"Bucket": inputs["bucket"]}
    configuration: dict[str, Any] = {} if cloud.region == FIRST_REGION else {"LocationConstraint": cloud.region}
    if inputs.get("tagsAll"):
        configuration["Tags"] = tag_list(inputs["tagsAll"])
    if configuration:
        request["CreateBucketConfiguration"] = configuration
    if inputs.get("objectLockEnabled"):
        request["ObjectLockEnabledForBucket"] = True
    elif _exists(cloud, inputs["bucket"]):  # in us-east-1, CreateBucket succeeds for a bucket of the same account
        raise RequestRefused(f"CreateBucket BucketAlreadyOwnedByYou: {inputs['bucket']} already exists")
    cloud.s3.create_bucket(**request)
    return str(inputs["bucket"])


def _exists(cloud: RegionClients, bucket: str) -> bool:
    try:
        with not_found_on("404", "NoSuchBucket"):
            cloud.s3.head_bucket(Bucket=bucket)
    except NotFound:
        return False
    return True


def _apply_bucket(cloud: RegionClients, id: str, inputs: State) -> None:
    tags = inputs.get("tagsAll") or {}
    if tags:
        cloud.s3.put_bucket_tagging(Bucket=id, Tagging={"TagSet": tag_list(tags)})
    else:
        cloud.s3.delete_bucket_tagging(Bucket=id)


def _retag_bucket(cloud: RegionClients, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    """Do nothing: `apply` writes all tags."""


def _read_bucket(cloud: RegionClients, id: str, known: State) -> State:
    with not_found_on("404", "NoSuchBucket"):
        cloud.s3.head_bucket(Bucket=id)
    region = cloud.s3.get_bucket_location(Bucket=id).get("LocationConstraint") or FIRST_REGION
    return {
        "bucket": id,
        "arn": f"arn:{cloud.partition.name}:s3:::{id}",
        "bucketDomainName": f"{id}.s3.{cloud.partition.dns_suffix}",
        "bucketRegionalDomainName": f"{id}.s3.{region}.{cloud.partition.dns_suffix}",
        "bucketRegion": region,
        "hostedZoneId": HOSTED_ZONES.get(region, ""),
        "tagsAll": tag_map(setting(cloud.s3.get_bucket_tagging, id, "TagSet")),
    }


def setting(get: Callable[..., Mapping[str, Any]], bucket: str, key: str) -> Any:
    """A setting of a bucket; None if it is not set."""
    try:
        with not_found_on(*NO_SETTING):
            return get(Bucket=bucket).get(key)
    except NotFound:
        return None


def _delete_bucket(cloud: RegionClients, id: str, state: State) -> None:
    with not_found_on("NoSuchBucket"):
        if state.get("forceDestroy"):
            _empty(cloud, id)
        cloud.s3.delete_bucket(Bucket=id)


def _empty(cloud: RegionClients, bucket: str) -> None:
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
        "forceDestroy": boolean(write_only=True, default=False),
        "objectLockEnabled": boolean(write_only=True, replaces=True, computed=True),
    },
    outputs={
        "arn": text(),
        "bucketDomainName": text(),
        "bucketRegionalDomainName": text(),
        "bucketRegion": text(),
        "hostedZoneId": text(),
    },
    create=_create_bucket,
    apply=_apply_bucket,
    read=_read_bucket,
    delete=_delete_bucket,
    retag=_retag_bucket,
    autonamed="bucket",
)

RESOURCES = (BUCKET,)
