"""How much a bucket holds, and emptying it with every version that it keeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from corral.inventory.things import Thing

_BYTES_PER_GIB = 2**30
_COUNTED_PAGES = 10  # of a thousand versions each: about two seconds; beyond that the size is not known


def sized(session: Any, bucket: Thing) -> Thing:
    """The bucket with the size of all its versions, or without one where counting would take too long."""
    total = 0
    for number, page in enumerate(_versions(session, bucket.id)):
        if number == _COUNTED_PAGES:
            return bucket
        total += sum(version["Size"] for version in page.get("Versions", ()))
    return replace(bucket, size_gib=total / _BYTES_PER_GIB)


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
