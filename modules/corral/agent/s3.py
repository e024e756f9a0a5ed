"""Read a cluster's files from S3. boto3 is imported on construction, so other commands do not load it."""

from collections.abc import Sequence

from corral.agent.aws_errors import aws_errors_as
from corral.agent.config_store import StoreError
from corral.model.deployed import BootFacts


class BucketStore:
    """The objects below the cluster's prefix, read with the machine's own role."""

    def __init__(self, facts: BootFacts) -> None:
        import boto3

        self._client = boto3.client("s3", region_name=facts.region)
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
