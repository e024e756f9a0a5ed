"""Serve the head's metrics on loopback, to root and Prometheus's own user alone; take that user's alerts and series.

They name queues, accounts and their jobs, which users of a shared head may not all see (`PrivateData` in slurm.conf).
The kernel identifies the user of each connection (`local_http`), so there is no password to keep.
"""

import asyncio
import logging
import pwd
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from corral.agent.alert_topic import MESSAGE_BYTES, AlertTopic
from corral.agent.errors import AgentError
from corral.agent.local_http import HOST, LocalRequest, LocalResponse, LocalServer, listen, plain_response
from corral.agent.metrics.text_format import CONTENT_TYPE
from corral.agent.remote_write import SERIES_BYTES, RemoteWriter
from corral.model.monitoring import METRICS_PORT, PROMETHEUS_USER, REMOTE_WRITE_PATH, REMOTE_WRITES, TOPIC_PATH

PATH = "/metrics"
BODY_BYTES = max(MESSAGE_BYTES, SERIES_BYTES)

log = logging.getLogger("corral.agent")


def serve_metrics(
    text: Callable[[], str],
    topic: AlertTopic | None = None,
    writer: RemoteWriter | None = None,
    port: int = METRICS_PORT,
) -> None:
    """Serve these metrics forever, and send alerts to the topic and series to the workspace.

    Raises LocalServerError if the port is taken.
    """
    with listen(port) as listener:
        responder = Responder(text, topic=topic, writer=writer)
        asyncio.run(metrics_server(responder, listener).serve_forever())


class Responder:
    """Answers scrapes, one after the other: each is a call of squeue. `user_id`: the id of a user, or KeyError.

    `topic`: where alerts go; `writer`: where series go; None if they are refused.
    """

    def __init__(
        self,
        text: Callable[[], str],
        user_id: Callable[[str], int] | None = None,
        topic: AlertTopic | None = None,
        writer: RemoteWriter | None = None,
    ) -> None:
        self._text = text
        self._user_id = user_id or (lambda name: pwd.getpwnam(name).pw_uid)
        self._topic = topic
        self._writer = writer
        self._thread = ThreadPoolExecutor(1)
        self._publishing = ThreadPoolExecutor(1)  # SNS may be slow, and a scrape must not wait for it
        self._writing = ThreadPoolExecutor(REMOTE_WRITES)

    async def __call__(self, request: LocalRequest) -> LocalResponse:
        """The response to a request."""
        path = request.path.rstrip("/")  # Alertmanager adds a slash
        if path not in (PATH, TOPIC_PATH, REMOTE_WRITE_PATH):
            return plain_response(404, f"no such path {request.path} - metrics are at {PATH}")
        if request.host.partition(":")[0] not in (HOST, "localhost"):
            return plain_response(403, f"invalid Host header {request.host!r}: the request may come from a web page")
        if not self.may_read(request.user):
            return plain_response(403, f"metrics are for root and {PROMETHEUS_USER}: they show what all users do")
        if path == TOPIC_PATH:
            return await self._publish(request.body)
        if path == REMOTE_WRITE_PATH:
            return await self._write(request.body)
        try:
            text = await asyncio.get_running_loop().run_in_executor(self._thread, self._text)
        except (AgentError, OSError) as error:
            log.error("metrics: %s", error)
            return plain_response(503, str(error))
        return LocalResponse(status=200, body=text.encode(), content_type=CONTENT_TYPE)

    async def _publish(self, body: bytes | None) -> LocalResponse:
        """Send a message of Alertmanager to the topic, and answer as SNS does."""
        if self._topic is None or body is None:
            return plain_response(405, "alerts come by POST")
        status, text = await asyncio.get_running_loop().run_in_executor(self._publishing, self._topic.respond, body)
        return LocalResponse(status=status, body=text.encode(), content_type="text/xml")

    async def _write(self, body: bytes | None) -> LocalResponse:
        """Send Prometheus's series to the workspace, and answer as that does."""
        if self._writer is None or body is None:
            return plain_response(405, "series come by POST")
        return plain_response(
            *await asyncio.get_running_loop().run_in_executor(self._writing, self._writer.respond, body)
        )

    def may_read(self, user: int | None) -> bool:
        """Whether this user reads metrics, and sends alerts and series."""
        if user == 0:
            return True
        try:
            return user is not None and user == self._user_id(PROMETHEUS_USER)
        except KeyError:
            return False


def metrics_server(responder: Responder, listener: socket.socket) -> LocalServer:
    """The server of the head's metrics. It reads no body of anybody who may not post one."""
    return LocalServer(responder, listener, body_bytes=BODY_BYTES, may_post=responder.may_read)
