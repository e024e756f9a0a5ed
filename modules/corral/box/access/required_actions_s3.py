"""The actions that S3 calls require, on buckets, objects and their versions.

Source: S3 API Reference, "Permissions" of each operation; S3 User Guide, "Required permissions for Amazon S3 API
operations". The bucket is in the path, as clients do for an IP address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote
from xml.etree import ElementTree

from corral.box.access.policy_evaluator import Context, RequiredAction
from corral.box.access.service_reference import resource_types
from corral.box.account import PARTITION
from corral.box.api_calls import Call

# Operations whose action has another name.
ACTIONS: Mapping[str, str] = {
    "CompleteMultipartUpload": "PutObject",
    "CopyObject": "PutObject",
    "CreateMultipartUpload": "PutObject",
    "DeleteBucketCors": "PutBucketCORS",
    "DeleteBucketEncryption": "PutEncryptionConfiguration",
    "DeleteBucketLifecycle": "PutLifecycleConfiguration",
    "DeleteBucketOwnershipControls": "PutBucketOwnershipControls",
    "DeleteBucketReplication": "PutReplicationConfiguration",
    "DeleteBucketTagging": "PutBucketTagging",
    "DeleteObjects": "DeleteObject",
    "DeletePublicAccessBlock": "PutBucketPublicAccessBlock",
    "GetBucketAccelerateConfiguration": "GetAccelerateConfiguration",
    "GetBucketCors": "GetBucketCORS",
    "GetBucketEncryption": "GetEncryptionConfiguration",
    "GetBucketLifecycle": "GetLifecycleConfiguration",
    "GetBucketLifecycleConfiguration": "GetLifecycleConfiguration",
    "GetBucketNotificationConfiguration": "GetBucketNotification",
    "GetBucketReplication": "GetReplicationConfiguration",
    "GetObjectLockConfiguration": "GetBucketObjectLockConfiguration",
    "GetPublicAccessBlock": "GetBucketPublicAccessBlock",
    "HeadBucket": "ListBucket",
    "HeadObject": "GetObject",
    "ListBuckets": "ListAllMyBuckets",
    "ListMultipartUploads": "ListBucketMultipartUploads",
    "ListObjectVersions": "ListBucketVersions",
    "ListObjects": "ListBucket",
    "ListObjectsV2": "ListBucket",
    "ListParts": "ListMultipartUploadParts",
    "PutBucketAccelerateConfiguration": "PutAccelerateConfiguration",
    "PutBucketCors": "PutBucketCORS",
    "PutBucketEncryption": "PutEncryptionConfiguration",
    "PutBucketLifecycle": "PutLifecycleConfiguration",
    "PutBucketLifecycleConfiguration": "PutLifecycleConfiguration",
    "PutBucketNotificationConfiguration": "PutBucketNotification",
    "PutBucketReplication": "PutReplicationConfiguration",
    "PutObjectLockConfiguration": "PutBucketObjectLockConfiguration",
    "PutPublicAccessBlock": "PutBucketPublicAccessBlock",
    "UploadPart": "PutObject",
    "UploadPartCopy": "PutObject",
}
# Those of one version of an object.
_OF_VERSION = {
    "DeleteObject": "DeleteObjectVersion",
    "DeleteObjectTagging": "DeleteObjectVersionTagging",
    "GetObject": "GetObjectVersion",
    "GetObjectTagging": "GetObjectVersionTagging",
    "PutObjectTagging": "PutObjectVersionTagging",
}


def s3_actions_required_by(
    environ: Mapping[str, Any], call: Call, body: bytes, base: Context
) -> Iterator[RequiredAction]:
    """The actions that must be allowed for a call of S3. Raises NotImplementedError for an unknown one."""
    bucket, _, key = unquote(str(environ.get("PATH_INFO", ""))).lstrip("/").partition("/")
    action = ACTIONS.get(call.action, call.action)
    resource_types("s3", action)
    query = dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    keys = {f"s3:{name}": query[name] for name in ("delimiter", "max-keys", "prefix") if name in query}
    context = {**base, **keys}
    if call.action == "DeleteObjects":
        yield from (_on(name, f"{bucket}/{key}", context) for name, key in _deleted(body))
        return
    version = query.get("versionId")
    where = f"{bucket}/{key}" if key else bucket
    yield _on(_OF_VERSION.get(action, action) if version else action, where, context)
    if source := environ.get("HTTP_X_AMZ_COPY_SOURCE"):
        path, _, of_version = unquote(str(source)).lstrip("/").partition("?versionId=")
        yield _on("GetObjectVersion" if of_version else "GetObject", path, base)
    if environ.get("HTTP_X_AMZ_TAGGING"):
        yield _on("PutObjectTagging", where, base)
    if call.action == "CreateBucket" and any(_elements(body, "Tag")):
        yield _on("TagResource", where, base)


def _on(action: str, where: str, context: Context) -> RequiredAction:
    return RequiredAction(
        action=f"s3:{action}", resource=f"arn:{PARTITION}:s3:::{where}" if where else "*", context=context
    )


def _deleted(body: bytes) -> Iterator[tuple[str, str]]:
    """The action and the key of each object that DeleteObjects names."""
    for one in _elements(body, "Object"):
        found = {child.tag.rpartition("}")[2]: str(child.text) for child in one}
        yield "DeleteObjectVersion" if "VersionId" in found else "DeleteObject", found.get("Key", "")


def _elements(body: bytes, name: str) -> Iterator[ElementTree.Element]:
    if body[:1] == b"<":
        yield from (one for one in ElementTree.fromstring(body).iter() if one.tag.rpartition("}")[2] == name)
