"""The base's bucket: clients for it, and a cluster's files in it. boto3 is imported only when a client is created."""

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

    def read(self, name: str) -> bytes:
        """The bytes of one of these objects. Raises StoreError."""
        with aws_errors_as(StoreError, f"read s3://{self._bucket}/{self._prefix}{name}"):
            content: bytes = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)["Body"].read()
        return content

    def tag(self, name: str) -> str:
        """Return the object's ETag, which changes with it. Raises StoreError."""
        with aws_errors_as(StoreError, f"read s3://{self._bucket}/{self._prefix}{name}"):
            return str(self._client.head_object(Bucket=self._bucket, Key=self._prefix + name)["ETag"])
