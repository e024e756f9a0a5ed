"""boto3 clients for the account of an engine's environment, independent of this process's own environment."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any

from corral.model.bucket_owner import expect_owner


class Account:
    """boto3 clients of one account and region; the inventory accepts it as a session.

    Its S3 client reaches buckets of the account alone.
    """

    def __init__(self, environment: Mapping[str, str], region: str) -> None:
        import boto3

        self.region_name = region
        self._endpoint = environment.get("AWS_ENDPOINT_URL")
        self._session = boto3.Session(
            aws_access_key_id=environment.get("AWS_ACCESS_KEY_ID"),
            aws_secret_access_key=environment.get("AWS_SECRET_ACCESS_KEY"),
            aws_session_token=environment.get("AWS_SESSION_TOKEN"),
            profile_name=environment.get("AWS_PROFILE"),
            region_name=region,
        )
        self.client = cache(self._client)

    def _client(self, service: str, region_name: str | None = None) -> Any:
        from corral.inventory.endpoint_check import watched

        arguments: dict[str, Any] = {"region_name": region_name or self.region_name, "endpoint_url": self._endpoint}
        client = watched(self._session.client(service, **arguments), quick=False)
        return expect_owner(client, lambda: self._number) if service == "s3" else client

    @cached_property
    def _number(self) -> str:
        from corral.inventory.untagged import account_of

        return account_of(self)
