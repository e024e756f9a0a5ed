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
from corral.box.switches import NEW_BOX, Behaviour, Switches
from corral.model.partitions import Partition, partition_of

USER_AGENT = "corral-box-provider"  # the box's log of calls tells the provider from commands
GLOBAL = frozenset({"iam", "route53", "budgets"})  # services without regions; botocore uses us-east-1
CONNECT_TIMEOUT_S = 2  # the box is on this machine: it answers at once or does not run
READ_TIMEOUT_S = 60  # RunInstances of a thousand takes seconds
ATTEMPTS = 4  # three retries outlast a short throttle; a stopped box is reported after about three seconds
DEPENDENTS_S = 20  # interfaces of a deleted service disappear within seconds; later ones are in use
LONGEST_WAIT_S = 120  # an instant box takes seconds
OVERHEAD_S = 10  # added to the divided times of an aws-like box: a busy machine's own work is not divided
PROPAGATION_S = 300  # for what EC2 has just created; source: terraform-provider-aws, ec2PropagationTimeout
PROFILE_S = 120  # for a new instance profile in EC2; source: the same, iamPropagationTimeout
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
            user_agent_extra=USER_AGENT,
        )


class RegionClients:
    """The boto3 clients of one region, as attributes: `cloud.ec2`, `cloud.s3`.

    `timeout_s`: how long to wait for an object, in seconds of AWS. `switches`: those of the box.
    """

    def __init__(self, clients: ClientCache, region: str, timeout_s: float = 600, switches: Switches = NEW_BOX) -> None:
        self.region = region
        self._clients = clients
        self._switches = switches
        self.timeout_s = self.box_s(timeout_s, LONGEST_WAIT_S)
        self.dependents_s = self.box_s(timeout_s, DEPENDENTS_S)

    def box_s(self, aws_s: float, instant_s: float) -> float:
        """A time to wait in this box, in seconds."""
        if self._switches.behaviour is Behaviour.INSTANT:
            return instant_s
        return aws_s / self._switches.speed + OVERHEAD_S

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

    def until(self, probe: Callable[[], T | None], what: str) -> T:
        """The first result of `probe` that is not None. Raises NotReady after the timeout."""
        timeout_s = self.timeout_s
        deadline, pause_s = time.monotonic() + timeout_s, FIRST_PAUSE_S
        while (found := probe()) is None:
            if time.monotonic() > deadline:
                raise NotReady(f"timed out after {timeout_s:.0f} s: {what}")
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
        return found

    def retried(self, call: Callable[[], T], is_late: Callable[[Exception], bool], aws_s: float = PROPAGATION_S) -> T:
        """The result of `call`, which is repeated while its error says that AWS lacks what it has just created.

        An instant box lacks nothing, so that there the first error counts.
        """
        deadline, pause_s = time.monotonic() + self.box_s(aws_s, 0), FIRST_PAUSE_S
        while True:
            try:
                return call()
            except Exception as error:
                if time.monotonic() > deadline or not is_late(error):
                    raise
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    def until_gone(self, describe: Callable[[], object], what: str) -> None:
        """Wait until `describe` raises NotFound."""

        def probe() -> bool | None:
            try:
                describe()
            except NotFound:
                return True
            return None

        self.until(probe, f"deletion of {what}")
