"""boto3 clients of the box, one per service and region, and waiting for a state.

Only a loopback endpoint is called; there is no fallback to AWS.
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

from corral.box.provider.provider_errors import BoxUnreachable, NotFound, NotReady
from corral.model.partitions import Partition, partition_of

GLOBAL = frozenset({"iam", "route53", "budgets"})  # services without regions; botocore uses us-east-1
CONNECT_TIMEOUT_S = 2  # the box is on this machine: it answers at once or does not run
READ_TIMEOUT_S = 60  # RunInstances of a thousand takes seconds
ATTEMPTS = 4  # three retries outlast a short throttle; a stopped box is reported after about three seconds
LONGEST_WAIT_S = 120  # AWS takes up to ten minutes, the box seconds
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0

T = TypeVar("T")


def box_endpoint(environ: Mapping[str, str] = os.environ) -> str:
    """The URL of the box. Raises BoxUnreachable if it is not set or not on this machine."""
    url = environ.get("AWS_ENDPOINT_URL", "")
    if not url:
        raise BoxUnreachable('AWS_ENDPOINT_URL is not set; this provider calls only a box - eval "$(corral box env)"')
    host = urlsplit(url).hostname or ""
    if not _is_loopback(host):
        raise BoxUnreachable(f"AWS_ENDPOINT_URL is {url}, not on this machine; this provider calls only a box")
    return url


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class ClientCache:
    """boto3 clients for the box with the access key in `environ`, each created once. Thread-safe."""

    def __init__(self, url: str, environ: Mapping[str, str] = os.environ) -> None:
        self.url = url
        self._environ = environ
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str], Any] = {}

    def get(self, service: str, region: str) -> Any:
        """The client for a service in a region."""
        with self._lock:
            key = (service, "us-east-1" if service in GLOBAL else region)
            if key not in self._clients:
                self._clients[key] = self._create(*key)
            return self._clients[key]

    @cached_property
    def account(self) -> str:
        """The account id."""
        return str(self.get("sts", "us-east-1").get_caller_identity()["Account"])

    def _create(self, service: str, region: str) -> Any:
        return self._session.client(service, region_name=region, endpoint_url=self.url, config=self._config)

    @cached_property
    def _session(self) -> Any:
        import boto3  # takes half a second; a preview without changes does not need it

        key, secret = self._environ.get("AWS_ACCESS_KEY_ID"), self._environ.get("AWS_SECRET_ACCESS_KEY")
        token = self._environ.get("AWS_SESSION_TOKEN") or None
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


class RegionClients:
    """The boto3 clients of one region, as attributes: `cloud.ec2`, `cloud.s3`."""

    def __init__(self, clients: ClientCache, region: str) -> None:
        self.region = region
        self._clients = clients

    @property
    def url(self) -> str:
        """The URL of the box."""
        return self._clients.url

    def __getattr__(self, service: str) -> Any:
        return self._clients.get(service.replace("_", "-"), self.region)

    @property
    def account(self) -> str:
        """The account id."""
        return self._clients.account

    @property
    def partition(self) -> Partition:
        """The partition of the region."""
        return partition_of(self.region)

    def arn(self, service: str, resource: str, *, regional: bool = True) -> str:
        """The ARN of a resource of this account."""
        return f"arn:{self.partition.name}:{service}:{self.region if regional else ''}:{self.account}:{resource}"

    def until(self, probe: Callable[[], T | None], what: str, timeout_s: float = LONGEST_WAIT_S) -> T:
        """The first result of `probe` that is not None. Raises NotReady after the timeout."""
        deadline, pause_s = time.monotonic() + timeout_s, FIRST_PAUSE_S
        while (found := probe()) is None:
            if time.monotonic() > deadline:
                raise NotReady(f"timed out after {timeout_s:.0f} s: {what}")
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
        return found

    def until_gone(self, describe: Callable[[], object], what: str) -> None:
        """Wait until `describe` raises NotFound."""

        def probe() -> bool | None:
            try:
                describe()
            except NotFound:
                return True
            return None

        self.until(probe, f"deletion of {what}")
