"""Bucket sizes, the files of each cluster in a bucket, and deletion of every object version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from corral.inventory.resources import AwsResource, ResourceKind
from corral.model.tags import CLUSTER_TAG, KEEP_TAG, TAG_PREFIX

_BYTES_PER_GIB = 2**30
_CLUSTERS = "clusters/"  # one folder for each cluster, with the files that its machines read at boot
_COUNTED_PAGES = 10  # pages of 1000 versions, about two seconds; for more the size stays unknown


def measure_bucket(session: Any, bucket: AwsResource) -> AwsResource:
    """The bucket with the total size of its versions; no size if counting would take too long."""
    total = 0
    for number, page in enumerate(_versions(session, bucket.id)):
        if number == _COUNTED_PAGES:
            return bucket
        total += sum(version["Size"] for version in page.get("Versions", ()))
    return replace(bucket, size_gib=total / _BYTES_PER_GIB)


def files_of_clusters(session: Any, bucket: AwsResource) -> Iterator[AwsResource]:
    """A resource for each cluster with files in this bucket of a base; objects carry no tags of their own."""
    pages = session.client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket.id, Prefix=_CLUSTERS)
    sizes: dict[str, int] = {}
    for page in pages:
        for item in page.get("Contents", ()):
            cluster = item["Key"].removeprefix(_CLUSTERS).partition("/")[0]
            sizes[cluster] = sizes.get(cluster, 0) + item["Size"]
    for cluster, size in sorted(sizes.items()):
        tags = {key: value for key, value in bucket.tags.items() if key.startswith(TAG_PREFIX) and key != KEEP_TAG}
        yield AwsResource(
            kind=ResourceKind.FILES,
            id=f"{bucket.id}/{_CLUSTERS}{cluster}/",
            tags={**tags, CLUSTER_TAG: cluster},
            size_gib=size / _BYTES_PER_GIB,
        )


def delete_files(session: Any, id: str) -> None:
    """Delete the objects below this prefix. Their old versions stay until the bucket expires them."""
    bucket, _, prefix = id.partition("/")
    s3 = session.client("s3")
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        if keys := [{"Key": item["Key"]} for item in page.get("Contents", ())]:
            s3.delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True})


def empty(session: Any, bucket: str) -> None:
    """Delete every object version and delete marker of the bucket."""
    s3 = session.client("s3")
    for page in _versions(session, bucket):
        found = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
        keys = [{"Key": version["Key"], "VersionId": version["VersionId"]} for version in found]
        if keys:
            s3.delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True})
    for upload in s3.list_multipart_uploads(Bucket=bucket).get("Uploads", ()):
        s3.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])


def _versions(session: Any, bucket: str) -> Iterator[Any]:
    yield from session.client("s3").get_paginator("list_object_versions").paginate(Bucket=bucket)
