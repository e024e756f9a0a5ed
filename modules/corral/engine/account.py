"""boto3 clients for the account that an engine's environment means, whatever this process's own environment says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Client = Callable[[str], Any]


def clients(environment: Mapping[str, str], region: str | None) -> Client:
    """A maker of clients by service, in this region or in the environment's."""
    import boto3

    session = boto3.Session(
        aws_access_key_id=environment.get("AWS_ACCESS_KEY_ID"),
        aws_secret_access_key=environment.get("AWS_SECRET_ACCESS_KEY"),
        aws_session_token=environment.get("AWS_SESSION_TOKEN"),
        profile_name=environment.get("AWS_PROFILE"),
        region_name=region or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION"),
    )
    return lambda service: session.client(service, endpoint_url=environment.get("AWS_ENDPOINT_URL"))
