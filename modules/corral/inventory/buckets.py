"""How much a bucket holds, what of it is a cluster's files, and emptying it with every version that it keeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from corral.inventory.things import CLUSTER_TAG, KEEP_TAG, Kind, Thing

_BYTES_PER_GIB = 2**30
_CLUSTERS = "clusters/"  # below it each cluster has a folder of what its machines read at boot
_COUNTED_PAGES = 10  # of a thousand versions each: about two seconds; beyond that the size is not known


def sized(session: Any, bucket: Thing) -> Thing:
    """The bucket with the size of all its versions, or without one where counting would take too long."""
    total = 0
    for number, page in enumerate(_versions(session, bucket.id)):
        if number == _COUNTED_PAGES:
            return bucket
        total += sum(version["Size"] for version in page.get("Versions", ()))
    return replace(bucket, size_gib=total / _BYTES_PER_GIB)


def files_of_clusters(session: Any, bucket: Thing) -> Iterator[Thing]:
    """A thing for every cluster that has files in this bucket of a base; objects carry no tags of their own."""
    pages = session.client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket.id, Prefix=_CLUSTERS)
    sizes: dict[str, int] = {}
    for page in pages:
        for item in page.get("Contents", ()):
            cluster = item["Key"].removeprefix(_CLUSTERS).partition("/")[0]
            sizes[cluster] = sizes.get(cluster, 0) + item["Size"]
    for cluster, size in sorted(sizes.items()):
        tags = {key: value for key, value in bucket.tags.items() if key.startswith("corral:") and key != KEEP_TAG}
        yield Thing(
            kind=Kind.FILES,
            id=f"{bucket.id}/{_CLUSTERS}{cluster}/",
            tags={**tags, CLUSTER_TAG: cluster},
            size_gib=size / _BYTES_PER_GIB,
        )


def delete_files(session: Any, id: str) -> None:
    """Deletes the objects below this place. The bucket keeps their old versions for as long as it keeps any."""
    bucket, _, prefix = id.partition("/")
    s3 = session.client("s3")
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        if keys := [{"Key": item["Key"]} for item in page.get("Contents", ())]:
            s3.delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True})


def empty(session: Any, bucket: str) -> None:
    """Deletes every object of the bucket, every version and every mark of a deletion."""
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
