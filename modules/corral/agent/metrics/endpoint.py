"""Serve the head's metrics on loopback, to root and Prometheus's own user alone.

They name queues, accounts and their jobs, which users of a shared head may not all see (`PrivateData` in slurm.conf).
The kernel identifies the user of each connection (`local_http`), so there is no password to keep.
"""

import asyncio
import logging
import pwd
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from corral.agent.errors import AgentError
from corral.agent.local_http import HOST, LocalRequest, LocalResponse, LocalServer, listen
from corral.agent.metrics.text_format import CONTENT_TYPE
from corral.model.monitoring import METRICS_PORT, PROMETHEUS_USER

PATH = "/metrics"

log = logging.getLogger("corral.agent")


def serve_metrics(text: Callable[[], str], port: int = METRICS_PORT) -> None:
    """Serve these metrics forever. Raises LocalServerError if the port is taken."""
    with listen(port) as listener:
        asyncio.run(LocalServer(Responder(text), listener).serve_forever())


class Responder:
    """Answers scrapes, one after the other: each is a call of squeue. `user_id`: the id of a user, or KeyError."""

    def __init__(self, text: Callable[[], str], user_id: Callable[[str], int] | None = None) -> None:
        self._text = text
        self._user_id = user_id or (lambda name: pwd.getpwnam(name).pw_uid)
        self._thread = ThreadPoolExecutor(1)

    async def __call__(self, request: LocalRequest) -> LocalResponse:
        """The response to a request."""
        if request.path != PATH:
            return _plain(404, f"no such path {request.path} - metrics are at {PATH}")
        if request.host.partition(":")[0] not in (HOST, "localhost"):
            return _plain(403, f"invalid Host header {request.host!r}: the request may come from a web page")
        if not self._may_read(request.user):
            return _plain(403, f"metrics are for root and {PROMETHEUS_USER}: they show what all users do")
        try:
            text = await asyncio.get_running_loop().run_in_executor(self._thread, self._text)
        except (AgentError, OSError) as error:
            log.error("metrics: %s", error)
            return _plain(503, str(error))
        return LocalResponse(status=200, body=text.encode(), content_type=CONTENT_TYPE)

    def _may_read(self, user: int | None) -> bool:
        if user == 0:
            return True
        try:
            return user is not None and user == self._user_id(PROMETHEUS_USER)
        except KeyError:
            return False


def _plain(status: int, text: str) -> LocalResponse:
    return LocalResponse(status=status, body=f"{text}\n".encode(), content_type="text/plain; charset=utf-8")
