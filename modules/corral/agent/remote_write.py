"""Prometheus's series for a workspace: it writes them to the agent on loopback, which signs them and sends them on.

Prometheus could sign by itself, but Debian's builds before 2.45.6 do not and report nothing (their patch
91-Disable_opentelemetry removes the line that installs it). So it has no credentials of AWS, and the agent takes
nothing from it but the series: it knows the workspace itself.
Sources: Prometheus's specification of remote write 1.0; IAM User Guide, "Create a signed AWS API request".
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from corral.agent.errors import AgentError
from corral.model.monitoring import REMOTE_WRITES, RemoteWritePlan

SERIES_BYTES = 1024 * 1024  # a thousand samples are some ten thousand
_SERVICE = "aps"
_HEADERS = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}
_CONNECT_S, _READ_S = 5, 20  # Prometheus waits for thirty
_SHOWN = 500  # characters of an answer


class RemoteWriteError(AgentError):
    """The workspace has not answered, or there are no credentials now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteWriter:
    """Writes to the workspace that the cluster has now. `post`: the status and the text of its answer to these series.

    `post` raises RemoteWriteError.
    """

    target: Callable[[], RemoteWritePlan | None]
    post: Callable[[str, bytes], tuple[int, str]]

    def respond(self, series: bytes) -> tuple[int, str]:
        """The status and the text for Prometheus, which keeps the series and repeats a 429 or 5xx, and nothing else."""
        if (target := self.target()) is None:
            return 404, "this cluster has no monitoring.remote_write"
        try:
            status, text = self.post(target.url, series)
        except RemoteWriteError as error:
            return 503, str(error)
        return (status if status in _KNOWN else 502), f"{target.workspace}: {text[:_SHOWN]}"


_KNOWN = frozenset(status.value for status in HTTPStatus)


@dataclass(kw_only=True)
class SignedPost:
    """Sends series with the signature of these credentials. `credentials`: None if there are none."""

    region: str
    credentials: Callable[[], Any]
    _session: Any = field(init=False)

    def __post_init__(self) -> None:
        from botocore.httpsession import URLLib3Session

        within: Any = (_CONNECT_S, _READ_S)  # botocore's own calls pass a pair, too; its types know one number alone
        # Connections stay open: several requests a second in a large cluster.
        self._session = URLLib3Session(timeout=within, max_pool_connections=REMOTE_WRITES)

    def __call__(self, url: str, series: bytes) -> tuple[int, str]:
        """The status and the text of the answer. Raises RemoteWriteError."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError

        request = AWSRequest("POST", url, dict(_HEADERS), series)
        try:
            if (held := self.credentials()) is None:
                raise RemoteWriteError("the head has no credentials")
            SigV4Auth(held.get_frozen_credentials(), _SERVICE, self.region).add_auth(request)
            answer = self._session.send(request.prepare())
        except (BotoCoreError, RuntimeError) as error:  # the latter: credentials that ran out while they were renewed
            raise RemoteWriteError(f"cannot write to {url}: {error}") from error
        return answer.status_code, answer.text
