"""A cluster's files in S3. boto3 is imported when a store is made: nothing else of the agent needs it."""

from collections.abc import Sequence

from corral.model.deployed import BootFacts


class BucketStore:
    """The objects below the cluster's prefix, read with the machine's own role."""

    def __init__(self, facts: BootFacts) -> None:
        import boto3

        self._client = boto3.client("s3", region_name=facts.region)
        self._bucket = facts.bucket
        self._prefix = f"{facts.prefix}/"

    def names(self) -> Sequence[str]:
        """The key of every object below the prefix, without the prefix, sorted."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._prefix)
        return sorted(found["Key"].removeprefix(self._prefix) for page in pages for found in page.get("Contents", ()))

    def read(self, name: str) -> bytes:
        """The bytes of one of these objects."""
        return self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)["Body"].read()
