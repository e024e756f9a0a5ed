"""Objects in S3 buckets."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import absence
from corral.box.provider.resource import Change, Resource, State
from corral.box.provider.shapes import (
    asset,
    block,
    flag,
    text,
    texts,
)
from corral.box.provider.translate import record, request, tag_list, tag_map

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

RESOURCES = (OBJECT,)
