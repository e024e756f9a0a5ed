"""HTTP on loopback for processes of this machine: the kernel identifies the user of each connection. One answer each.

It also serves an address of the machine, where other machines connect: they have no user here, and need a token.
A server accepts GET, and POST if it names a bound for the body.

A connection is a file and no thread, and their number is bounded, so that no user keeps others from an answer.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException, parse_headers
from io import BytesIO

from corral.agent.errors import AgentError
from corral.agent.socket_owner import SocketOwners

HOST = "127.0.0.1"
_READ_S = 5.0  # clients send their request at once, but may wait for a CPU
_END = b"\r\n\r\n"  # of the headers
_REQUEST_BYTES = 16 * 1024  # SDKs and Prometheus send some hundred
_CONNECTIONS = 512  # below systemd's default limit of 1024 open files
# Connections that wait for `accept`: several for each of a node's CPUs, as all its programs may start within a second.
# With five, the default, the kernel drops the others, and they retry after one and three seconds.
_BACKLOG = 1024


class LocalServerError(AgentError):
    """The port cannot be served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRequest:
    """A request: its path, its Host header and the user who sent it; None if no local user did.

    `authorization`: the header of that name, empty without one.
    `body`: of a POST request; None for GET.
    """

    path: str
    host: str
    user: int | None
    authorization: str = ""
    body: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalResponse:
    """A response: its status and its body."""

    status: int
    body: bytes
    content_type: str


def plain_response(status: int, text: str) -> LocalResponse:
    """A response for people: one line of text."""
    return LocalResponse(status=status, body=f"{text}\n".encode(), content_type="text/plain; charset=utf-8")


def read_request(head: bytes, user: int | None, *, post: bool = False) -> LocalRequest | None:
    """The request with this head, and with this body if it is a POST; None if it is neither GET nor POST.

    `post`: whether POST is accepted.
    """
    first, _, body = head.partition(_END)
    line, _, headers = first.partition(b"\r\n")
    words = line.decode("latin-1").split(" ")
    with contextlib.suppress(HTTPException):
        if len(words) == 3 and words[0] in ("GET", *(("POST",) if post else ())):
            found = parse_headers(BytesIO(headers))
            return LocalRequest(
                path=words[1],
                host=found.get("Host", ""),
                user=user,
                authorization=found.get("Authorization", ""),
                body=body if words[0] == "POST" else None,
            )
    return None


def _body_bytes(head: bytes) -> int:
    """How many bytes of body follow this head. Negative or not a number: 0."""
    with contextlib.suppress(HTTPException, ValueError):
        headers = head.partition(_END)[0].partition(b"\r\n")[2]
        return max(0, int(parse_headers(BytesIO(headers)).get("Content-Length", "0")))
    return 0


def listen(port: int, address: str = HOST) -> socket.socket:
    """A socket that accepts connections from now on. Raises LocalServerError."""
    try:
        listener = socket.create_server((address, port), backlog=_BACKLOG)
    except OSError as error:
        raise LocalServerError(f"cannot serve http://{address}:{port}: {error}") from error
    listener.setblocking(False)
    return listener


class LocalServer:
    """Answers one request on each connection, by `respond`.

    At the bound of connections, the oldest one without a whole request is closed: a user who opens connections and
    sends nothing keeps nobody else from an answer. `read_s`: how long a request may take to arrive. `body_bytes`: the
    longest body of a POST request; 0 if none is accepted. `may_post`: whose bodies are read; those of others take no
    memory.
    """

    def __init__(
        self,
        respond: Callable[[LocalRequest], Awaitable[LocalResponse]],
        listener: socket.socket,
        read_s: float = _READ_S,
        connections: int = _CONNECTIONS,
        body_bytes: int = 0,
        may_post: Callable[[int | None], bool] = lambda _: True,
    ) -> None:
        self._respond = respond
        self._listener = listener
        # Whoever connects to another address may be on any machine.
        self._owners = SocketOwners(listener) if listener.getsockname()[0] == HOST else None
        self._read_s = read_s
        self._connections = connections
        self._body_bytes = body_bytes
        self._may_post = may_post
        self._open: set[asyncio.Task[None]] = set()
        self._reading: dict[asyncio.Task[None], None] = {}  # the oldest first

    async def serve_forever(self) -> None:
        """Accept and answer connections until this is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(self._listener)
            task = asyncio.create_task(self._serve(connection))
            self._open.add(task)
            self._reading[task] = None
            task.add_done_callback(self._forget)
            await asyncio.sleep(0)  # `sock_accept` lets no other task run while connections wait
            while len(self._open) >= self._connections:
                if oldest := next(iter(self._reading), None):
                    oldest.cancel()
                await asyncio.wait(self._open, return_when=asyncio.FIRST_COMPLETED)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._open.discard(task)
        self._reading.pop(task, None)

    async def _serve(self, connection: socket.socket) -> None:
        """Answer the request of a connection, and close it."""
        with connection, contextlib.suppress(OSError):  # gone, or too slow: TimeoutError is an OSError
            user = self._owners.user_of(connection) if self._owners else None
            body_bytes = self._body_bytes if self._body_bytes and self._may_post(user) else 0
            head = await asyncio.wait_for(_read(connection, body_bytes), self._read_s)
            self._reading.pop(asyncio.current_task(), None)  # type: ignore[arg-type]  # it runs in a task
            request = read_request(head, user, post=self._body_bytes > 0)
            answer = _bytes_of(await self._respond(request) if request else _REFUSED)
            await asyncio.wait_for(asyncio.get_running_loop().sock_sendall(connection, answer), self._read_s)


async def _read(connection: socket.socket, longest_body: int) -> bytes:
    """A request's bytes; empty if its headers or its body are too long, or the client has closed the connection."""
    found = b""
    while _END not in found:
        found += (piece := await asyncio.get_running_loop().sock_recv(connection, _REQUEST_BYTES))
        if not piece or len(found) > _REQUEST_BYTES:
            return b""
    if not longest_body:
        return found
    if (follows := _body_bytes(found)) > longest_body:
        return b""
    size = found.index(_END) + len(_END) + follows
    while len(found) < size:
        found += (piece := await asyncio.get_running_loop().sock_recv(connection, _REQUEST_BYTES))
        if not piece:
            return b""
    return found[:size]


_REFUSED = LocalResponse(
    status=400,
    body=f'{{"message": "not accepted here, or more than {_REQUEST_BYTES} bytes of headers"}}'.encode(),
    content_type="application/json",
)


def _bytes_of(response: LocalResponse) -> bytes:
    lines = (
        f"HTTP/1.0 {response.status} {HTTPStatus(response.status).phrase}",
        f"Content-Type: {response.content_type}",
        f"Content-Length: {len(response.body)}",
    )
    return "\r\n".join(lines).encode() + _END + response.body
