"""A local endpoint for the job role's credentials, `corral-agent credentials`.

It speaks the protocol of ECS's agent, so every AWS SDK finds it by AWS_CONTAINER_CREDENTIALS_FULL_URI. Only root uses
the machine's own role. The kernel reports the owner of each local connection, and so the user of each request.
Sources: AWS SDKs and Tools Reference Guide, "Container credential provider"; STS API reference, AssumeRole; IAM User
Guide, "Roles terms and concepts" (role chaining: an hour at most); proc_net_tcp in the kernel's documentation.
"""

import asyncio
import contextlib
import json
import logging
import pwd
import re
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from http.client import HTTPException, parse_headers
from io import BytesIO
from pathlib import Path
from typing import Any

from corral.agent.aws_errors import aws_errors_as
from corral.agent.errors import AgentError
from corral.agent.process_lock import exclusive
from corral.agent.user_rights import is_person

# Only root can bind a port below 1024, so no user can pose as this endpoint. Lustre's sockets use ports from 512 on
# (LNet, `socklnd`), old NFS clients from 665 on.
HOST, PORT = "127.0.0.1", 250
PATH = "/credentials"
URI = f"http://{HOST}:{PORT}{PATH}"
LOCK = Path("/run/corral/credentials.lock")
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_SESSION_S = 3600  # role chaining limits a session to an hour
_FRESH_FOR = timedelta(minutes=10)  # SDKs refresh some minutes before the expiry
_WAIT_S = 1.5  # botocore gives up after 2 s, and asks again a second later (ContainerMetadataFetcher)
_REFRESHES = 8  # concurrent calls of STS, one for a user, and so threads
_READ_S = 5.0  # clients send their request at once, but may wait for a CPU
_END = b"\r\n\r\n"  # of the headers; a GET request has no body
_REQUEST_BYTES = 16 * 1024  # SDKs send some hundred
_CONNECTIONS = 512  # below systemd's default limit of 1024 open files
# Connections that wait for `accept`: several for each of a node's CPUs, as all its programs may start within a second.
# With five, the default, the kernel drops the others, and they retry after one and three seconds.
_BACKLOG = 1024

log = logging.getLogger("corral.agent")


class CredentialsError(AgentError):
    """The job role's credentials are not available."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRoleCredentials:
    """Credentials of the job role, as STS returned them."""

    access_key: str
    secret_key: str
    token: str
    expires: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialsRequest:
    """A request: its path, its Host header and the user who sent it; None if no local user did."""

    path: str
    host: str
    user: int | None


@dataclass(slots=True, kw_only=True)
class JobRole:
    """Assumes the job role for each user, and caches the credentials until shortly before they expire.

    `assume`: returns new credentials for a session of this name, or raises CredentialsError; it may block.
    `wait_s`: how long a request waits for it.
    """

    assume: Callable[[str], JobRoleCredentials]
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    wait_s: float = _WAIT_S
    _held: dict[str, JobRoleCredentials] = field(default_factory=dict)
    _refreshes: dict[str, asyncio.Task[str | None]] = field(default_factory=dict)
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_REFRESHES))

    async def of(self, session: str) -> JobRoleCredentials:
        """Return credentials that are valid for at least ten minutes; if STS is slow or fails, what is left of them.

        One call of STS serves all requests of a session, and goes on if they wait no longer. Raises CredentialsError.
        """
        held = self._held.get(session)
        if held and held.expires - self.clock() >= _FRESH_FOR:
            return held
        if session not in self._refreshes:
            self._refreshes[session] = asyncio.create_task(self._refresh(session))
        problem: str | None = f"STS has not answered within {self.wait_s:g} s"
        with contextlib.suppress(TimeoutError):
            problem = await asyncio.wait_for(asyncio.shield(self._refreshes[session]), self.wait_s)
        held = self._held.get(session)
        if held is None or held.expires <= self.clock():
            raise CredentialsError(problem or "the new credentials have expired")
        return held

    async def _refresh(self, session: str) -> str | None:
        """Assume the role for this session; return the problem if that fails."""
        try:
            held = await asyncio.get_running_loop().run_in_executor(self._threads, self.assume, session)
        except CredentialsError as error:
            log.error("credentials %s: %s", session, error)
            return str(error)
        finally:
            del self._refreshes[session]
        self._held[session] = held
        log.info("credentials %s: good until %s", session, held.expires.isoformat())
        return None


def role(client: Any, arn: str) -> JobRole:
    """Return the job role, assumed with this STS client."""
    return JobRole(assume=lambda session: _assume(client, arn, session))


async def respond(request: CredentialsRequest, role: JobRole) -> tuple[int, Mapping[str, str]]:
    """The status and the document of the response. Raises nothing: SDKs show the document of a failure."""
    if request.path != PATH:
        return 404, {"message": f"no such path {request.path} - the job role's credentials are at {PATH}"}
    if request.host not in (f"{HOST}:{PORT}", f"localhost:{PORT}"):
        return 403, {"message": f"invalid Host header {request.host!r}: the request may come from a web page"}
    if request.user is None or not (request.user == 0 or is_person(request.user)):
        return 403, {"message": "the job role is for root and people, not for system users"}
    try:
        held = await role.of(session_name(request.user))
    except CredentialsError as error:
        return 503, {"message": str(error)}
    return 200, {
        "AccessKeyId": held.access_key,
        "SecretAccessKey": held.secret_key,
        "Token": held.token,
        "Expiration": held.expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def session_name(user: int, name_of: Callable[[int], str] | None = None) -> str:
    """The session name of a user, as CloudTrail shows it: the user name, or the number of a user without one.

    Characters that STS does not accept become dashes.
    """
    try:
        name = (name_of or (lambda number: pwd.getpwuid(number).pw_name))(user)
    except KeyError:
        name = f"uid-{user}"
    return re.sub(r"[^\w+=,.@-]", "-", name, flags=re.ASCII)[:64].ljust(2, "-")


def owner_of(port: int, connections: str) -> int | None:
    """The user of the connection from this local port to the endpoint, by /proc/net/tcp and tcp6; None without one.

    A program that uses IPv6 sockets only, such as Java, connects from ::ffff:127.0.0.1, which has the same ending.
    """
    address = "".join(f"{int(part):02X}" for part in reversed(HOST.split(".")))
    for line in connections.splitlines():
        fields = line.split()
        if fields[1].endswith(f"{address}:{port:04X}") and fields[2].endswith(f"{address}:{PORT:04X}"):
            return int(fields[7])
    return None


def read_request(head: bytes, user: int | None) -> CredentialsRequest | None:
    """The request with this head, from this user; None if it is not a GET request."""
    line, _, headers = head.partition(b"\r\n")
    words = line.decode("latin-1").split(" ")
    with contextlib.suppress(HTTPException):
        if len(words) == 3 and words[0] == "GET":
            return CredentialsRequest(path=words[1], host=parse_headers(BytesIO(headers)).get("Host", ""), user=user)
    return None


def serve(role: JobRole, lock: Path = LOCK) -> None:
    """Serve requests forever; return at once if another endpoint runs. Raises CredentialsError."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(lock) as first:
        if first:
            with listen() as listener:
                asyncio.run(CredentialsServer(role, listener).serve_forever())
        else:
            log.info("credentials: another endpoint runs")


def listen(port: int = PORT) -> socket.socket:
    """A socket that accepts connections from now on. Raises CredentialsError."""
    try:
        listener = socket.create_server((HOST, port), backlog=_BACKLOG)
    except OSError as error:
        raise CredentialsError(f"cannot serve {URI}: {error}") from error
    listener.setblocking(False)
    return listener


class CredentialsServer:
    """Answers one request on each connection. A connection is a file and no thread, and their number is bounded.

    At the bound, the oldest connection without a whole request is closed: a user who opens connections and sends
    nothing keeps nobody else from an answer. `read_s`: how long a request may take to arrive.
    """

    def __init__(
        self, role: JobRole, listener: socket.socket, read_s: float = _READ_S, connections: int = _CONNECTIONS
    ) -> None:
        self._role = role
        self._listener = listener
        self._read_s = read_s
        self._connections = connections
        self._open: set[asyncio.Task[None]] = set()
        self._reading: dict[asyncio.Task[None], None] = {}  # the oldest first

    async def serve_forever(self) -> None:
        """Accept and answer connections until this is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            connection, (_, port) = await loop.sock_accept(self._listener)
            task = asyncio.create_task(self._serve(connection, port))
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

    async def _serve(self, connection: socket.socket, port: int) -> None:
        """Answer the request of a connection from this port, and close it."""
        with connection, contextlib.suppress(OSError):  # gone, or too slow: TimeoutError is an OSError
            head = await asyncio.wait_for(_read_head(connection), self._read_s)
            self._reading.pop(asyncio.current_task(), None)  # type: ignore[arg-type]  # it runs in a task
            user = owner_of(port, "".join(table.read_text(encoding="ascii") for table in _TABLES))
            request = read_request(head, user)
            refusal = 400, {"message": f"not a GET request with at most {_REQUEST_BYTES} bytes of headers"}
            status, document = await respond(request, self._role) if request else refusal
            answer = _response(status, document)
            await asyncio.wait_for(asyncio.get_running_loop().sock_sendall(connection, answer), self._read_s)


async def _read_head(connection: socket.socket) -> bytes:
    """The request's first line and headers; empty if they are too long or the client has closed the connection."""
    head = b""
    while _END not in head:
        piece = await asyncio.get_running_loop().sock_recv(connection, _REQUEST_BYTES)
        head += piece
        if not piece or len(head) > _REQUEST_BYTES:
            return b""
    return head


def _response(status: int, document: Mapping[str, str]) -> bytes:
    body = json.dumps(document).encode()
    lines = (
        f"HTTP/1.0 {status} {HTTPStatus(status).phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join(lines).encode() + _END + body


def _assume(client: Any, arn: str, session: str) -> JobRoleCredentials:
    with aws_errors_as(CredentialsError, f"assume the job role {arn}"):
        held = client.assume_role(RoleArn=arn, RoleSessionName=session, DurationSeconds=_SESSION_S)["Credentials"]
    return JobRoleCredentials(
        access_key=held["AccessKeyId"],
        secret_key=held["SecretAccessKey"],
        token=held["SessionToken"],
        expires=held["Expiration"],
    )
