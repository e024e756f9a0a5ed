"""Objects in S3 buckets."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_list, tag_map, to_request
from corral.box.provider.property_schema import asset, block, boolean, text, text_map
from corral.box.provider.provider_errors import not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State

CONTENT = ("content", "contentBase64", "source", "sourceHash")


def _body(inputs: State) -> bytes:
    if inputs.get("contentBase64") is not None:
        return base64.b64decode(inputs["contentBase64"])
    source = inputs.get("source")
    if not isinstance(source, dict):
        return str(inputs.get("content") or "").encode()
    return source["text"].encode() if "text" in source else Path(source["path"]).read_bytes()


def _put_object(cloud: RegionClients, inputs: State) -> str:
    request = to_request(OBJECT.props, inputs, PUT)
    cloud.s3.put_object(Body=_body(inputs), **request)
    return str(inputs["key"])


def _apply_object(cloud: RegionClients, id: str, inputs: State) -> None:
    where = {"Bucket": inputs["bucket"], "Key": inputs["key"]}
    if tags := tag_list(inputs.get("tagsAll")):
        cloud.s3.put_object_tagging(**where, Tagging={"TagSet": tags})
    else:
        cloud.s3.delete_object_tagging(**where)


def _retag_object(cloud: RegionClients, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    """Do nothing: `apply` writes all tags."""


def _read_object(cloud: RegionClients, id: str, known: State) -> State:
    bucket, key = known.get("bucket"), known.get("key")
    if not bucket or not key:  # an import names BUCKET/KEY
        bucket, _, key = id.removeprefix("s3://").partition("/")
    with not_found_on("404", "NoSuchKey", "NoSuchBucket"):
        head = cloud.s3.head_object(Bucket=bucket, Key=key)
    tags = cloud.s3.get_object_tagging(Bucket=bucket, Key=key).get("TagSet")
    return {
        **from_response(OBJECT.state, head),
        "bucket": bucket,
        "key": key,
        "etag": head["ETag"].strip('"'),
        "storageClass": head.get("StorageClass", "STANDARD"),
        "arn": f"arn:{cloud.partition.name}:s3:::{bucket}/{key}",
        "tagsAll": tag_map(tags),
    }


def _update_object(cloud: RegionClients, change: ResourceUpdate) -> None:
    if change.names - {"tags", "tagsAll", "forceDestroy", "overrideProvider"}:
        _put_object(cloud, change.new)


def _delete_object(cloud: RegionClients, id: str, state: State) -> None:
    bucket, key = state["bucket"], state["key"]
    with not_found_on("NoSuchBucket", "NoSuchKey"):
        for page in cloud.s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=key):
            for one in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]:
                if one["Key"] == key:
                    cloud.s3.delete_object(Bucket=bucket, Key=key, VersionId=one["VersionId"])


OBJECT = Resource(
    token="aws:s3/bucketObjectv2:BucketObjectv2",
    props={
        "bucket": text(required=True, replaces=True),
        "key": text(required=True, replaces=True),
        "content": text(write_only=True),
        "contentBase64": text(write_only=True),
        "source": asset(write_only=True),
        "sourceHash": text(write_only=True),
        "contentType": text(computed=True),
        "contentEncoding": text(),
        "contentDisposition": text(),
        "cacheControl": text(),
        "metadata": text_map(),
        "serverSideEncryption": text(computed=True),
        "kmsKeyId": text(computed=True, aws="SSEKMSKeyId"),
        "bucketKeyEnabled": boolean(computed=True),
        "storageClass": text(computed=True),
        "forceDestroy": boolean(write_only=True, default=False),
        "overrideProvider": block({"defaultTags": block({"tags": text_map()})}, write_only=True),
    },
    outputs={
        "arn": text(),
        "etag": text(changes_with=CONTENT),
        "versionId": text(changes_with=CONTENT),
    },
    create=_put_object,
    apply=_apply_object,
    read=_read_object,
    update=_update_object,
    delete=_delete_object,
    retag=_retag_object,
    identify=lambda state: str(state["key"]),
)
PUT = tuple(name for name in OBJECT.props if name not in {*CONTENT, "forceDestroy", "overrideProvider"})

RESOURCES = (OBJECT,)
