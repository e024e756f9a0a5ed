"""The base's bucket: clients for it, and a cluster's files in it. boto3 is imported only when a client is created."""

from collections.abc import Sequence
from typing import Any

from corral.agent.aws_errors import aws_errors_as
from corral.agent.config_store import StoreError
from corral.model.bucket_owner import expect_owner
from corral.model.deployed import BootFacts


def bucket_client(region: str, account: str) -> Any:
    """An S3 client for buckets of this account alone."""
    import boto3

    return expect_owner(boto3.client("s3", region_name=region), lambda: account)


class BucketStore:
    """The objects below the cluster's prefix, read with the machine's own role. `account`: the bucket's owner."""

    def __init__(self, facts: BootFacts, account: str) -> None:
        self._client = bucket_client(facts.region, account)
        self._bucket = facts.bucket
        self._prefix = f"{facts.prefix}/"

    def names(self) -> Sequence[str]:
        """The key of every object below the prefix, without the prefix, sorted. Raises StoreError."""
        with aws_errors_as(StoreError, f"read s3://{self._bucket}/{self._prefix}"):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._prefix)
            keys = [found["Key"] for page in pages for found in page.get("Contents", ())]
        return sorted(key.removeprefix(self._prefix) for key in keys)

    def read(self, name: str) -> bytes:
        """The bytes of one of these objects. Raises StoreError."""
        with aws_errors_as(StoreError, f"read s3://{self._bucket}/{self._prefix}{name}"):
            content: bytes = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)["Body"].read()
        return content

    def tag(self, name: str) -> str:
        """Return the object's ETag, which changes with it. Raises StoreError."""
        with aws_errors_as(StoreError, f"read s3://{self._bucket}/{self._prefix}{name}"):
            return str(self._client.head_object(Bucket=self._bucket, Key=self._prefix + name)["ETag"])
