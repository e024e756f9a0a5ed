"""The way to the box: one boto3 client per service and region, and waiting until something is so.

Only a loopback endpoint is ever called; there is no fallback to AWS.
"""

from __future__ import annotations

import ipaddress
import os
import threading
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import urlsplit

from corral.box.provider.problems import Gone, Unfinished, Unreachable

GLOBAL = frozenset({"iam", "route53", "budgets"})  # their one region, as botocore knows it
CONNECT_TIMEOUT_S = 2  # the box is on this machine: either it answers at once or it does not run
READ_TIMEOUT_S = 60  # RunInstances of a thousand takes seconds
ATTEMPTS = 4  # three repeats outlast a short throttle; a box that is down is told after about three seconds
LONGEST_WAIT_S = 120  # for what AWS takes ten minutes; in the box it is seconds
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0

T = TypeVar("T")


def endpoint(environ: Mapping[str, str] = os.environ) -> str:
    """The URL of the box. Raises Unreachable where none is named, or one that is not on this machine."""
    url = environ.get("AWS_ENDPOINT_URL", "")
    if not url:
        raise Unreachable('AWS_ENDPOINT_URL is not set: this provider talks to a box only - eval "$(corral box env)"')
    host = urlsplit(url).hostname or ""
    if not _is_loopback(host):
        raise Unreachable(f"AWS_ENDPOINT_URL is {url}, not on this machine: this provider talks to a box only")
    return url


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Clients:
    """boto3 clients for the box, made once each; safe to use from several threads."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._lock = threading.Lock()
        self._made: dict[tuple[str, str], Any] = {}

    def get(self, service: str, region: str) -> Any:
        """The client for a service in a region."""
        with self._lock:
            key = (service, "us-east-1" if service in GLOBAL else region)
            if key not in self._made:
                self._made[key] = self._make(*key)
            return self._made[key]

    @cached_property
    def account(self) -> str:
        """The number of the account."""
        return str(self.get("sts", "us-east-1").get_caller_identity()["Account"])

    def _make(self, service: str, region: str) -> Any:
        return self._session.client(service, region_name=region, endpoint_url=self.url, config=self._config)

    @cached_property
    def _session(self) -> Any:
        import boto3  # takes half a second, and a preview of nothing needs none

        key, secret = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
        token = os.environ.get("AWS_SESSION_TOKEN") or None
        return boto3.Session(
            aws_access_key_id=key or "box", aws_secret_access_key=secret or "box", aws_session_token=token
        )

    @cached_property
    def _config(self) -> Any:
        from botocore.config import Config

        return Config(
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            max_pool_connections=64,
            s3={"addressing_style": "path"},
        )


class Cloud:
    """The box as seen from one region: `cloud.ec2`, `cloud.s3` and so on are boto3 clients."""

    def __init__(self, clients: Clients, region: str) -> None:
        self.region = region
        self._clients = clients

    @property
    def url(self) -> str:
        """Where the box listens."""
        return self._clients.url

    def __getattr__(self, service: str) -> Any:
        return self._clients.get(service.replace("_", "-"), self.region)

    @property
    def account(self) -> str:
        """The number of the account."""
        return self._clients.account

    def arn(self, service: str, resource: str, *, regional: bool = True) -> str:
        """The ARN of something in this account."""
        return f"arn:aws:{service}:{self.region if regional else ''}:{self.account}:{resource}"

    def until(self, probe: Callable[[], T | None], what: str, timeout_s: float = LONGEST_WAIT_S) -> T:
        """What the probe answers first that is not None. Raises Unfinished after the timeout."""
        deadline, pause_s = time.monotonic() + timeout_s, FIRST_PAUSE_S
        while (found := probe()) is None:
            if time.monotonic() > deadline:
                raise Unfinished(f"{what}: not so after {timeout_s:.0f} s")
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
        return found

    def until_gone(self, look: Callable[[], object], what: str) -> None:
        """Returns when `look` raises Gone."""

        def probe() -> bool | None:
            try:
                look()
            except Gone:
                return True
            return None

        self.until(probe, f"deletion of {what}")
