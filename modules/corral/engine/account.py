"""The account that an engine's environment means, for boto3, whatever this process's own environment says."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any


class Account:
    """boto3 clients of one account and region; the inventory takes it for a session."""

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
        from corral.inventory.answering import watched

        asked: dict[str, Any] = {"region_name": region_name or self.region_name, "endpoint_url": self._endpoint}
        return watched(self._session.client(service, **asked), quick=False)
