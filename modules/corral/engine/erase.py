"""Emptying buckets, which AWS asks for before it deletes one. Called only when the data's name was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from corral.engine.account import clients
from corral.engine.stack import Stack

BUCKET = "aws:s3/bucket:Bucket"


def empty_buckets(stack: Stack, resources: Sequence[Mapping[str, Any]]) -> None:
    """Deletes every version of every object in the buckets among the resources."""
    for resource in resources:
        if resource["type"] == BUCKET:
            region = (resource.get("outputs") or {}).get("region")
            deleted = empty(clients(stack.engine.environment, region)("s3"), str(resource["id"]))
            stack.printer.say(f"  deleted   {deleted} object versions in {resource['id']}")


def empty(s3: Any, bucket: str) -> int:
    """How many versions and markers were deleted; zero where the bucket is gone."""
    deleted = 0
    try:
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
            found = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
            if found:
                keys = [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in found]
                s3.delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True})
                deleted += len(keys)
    except s3.exceptions.NoSuchBucket:
        return deleted
    return deleted
