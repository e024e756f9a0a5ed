"""A local endpoint for the job role's credentials, `corral-agent credentials`.

It speaks the protocol of ECS's agent, so every AWS SDK finds it by AWS_CONTAINER_CREDENTIALS_FULL_URI. Only root uses
the machine's own role. The kernel reports the owner of each local connection, and so the user of each request.
Sources: AWS SDKs and Tools Reference Guide, "Container credential provider"; STS API reference, AssumeRole; IAM User
Guide, "Roles terms and concepts" (role chaining: an hour at most); proc_net_tcp in the kernel's documentation.
"""

import json
import logging
import pwd
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from corral.agent.aws_errors import aws_errors_as
from corral.agent.errors import AgentError
from corral.agent.process_lock import exclusive

# Only root can bind a port below 1024, so no user can pose as this endpoint. Lustre's sockets use ports from 512 on
# (LNet, `socklnd`), old NFS clients from 665 on.
HOST, PORT = "127.0.0.1", 250
PATH = "/credentials"
URI = f"http://{HOST}:{PORT}{PATH}"
LOCK = Path("/run/corral/credentials.lock")
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_SESSION_S = 3600  # role chaining limits a session to an hour
_FRESH_FOR = timedelta(minutes=10)  # SDKs refresh some minutes before the expiry
_FIRST_PERSON = 1000  # below are the system's own users. Source: login.defs of Debian and Red Hat, UID_MIN
_NOBODY = 65534

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


@dataclass(slots=True)
class JobRole:
    """Assumes the job role for each user, and caches the credentials until shortly before they expire.

    `assume`: returns new credentials for a session of this name, or raises CredentialsError.
    """

    assume: Callable[[str], JobRoleCredentials]
    clock: Callable[[], datetime]
    _held: dict[str, JobRoleCredentials]
    _lock: threading.Lock

    def of(self, session: str) -> JobRoleCredentials:
        """Return credentials that are valid for at least ten minutes."""
        with self._lock:
            held = self._held.get(session)
            if held is None or held.expires - self.clock() < _FRESH_FOR:
                held = self._held[session] = self.assume(session)
                log.info("credentials %s: good until %s", session, held.expires.isoformat())
            return held


def role(client: Any, arn: str, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> JobRole:
    """Return the job role, assumed with this STS client."""
    return JobRole(lambda session: _assume(client, arn, session), clock, {}, threading.Lock())


def respond(request: CredentialsRequest, role: JobRole) -> tuple[int, Mapping[str, str]]:
    """The status and the document of the response. Raises nothing: SDKs show the document of a failure."""
    if request.path != PATH:
        return 404, {"message": f"no such path {request.path} - the job role's credentials are at {PATH}"}
    if request.host not in (f"{HOST}:{PORT}", f"localhost:{PORT}"):
        return 403, {"message": f"invalid Host header {request.host!r}: the request may come from a web page"}
    if request.user is None or not _is_person(request.user):
        return 403, {"message": "the job role is for root and people, not for system users"}
    try:
        held = role.of(session_name(request.user))
    except CredentialsError as error:
        log.error("credentials: %s", error)
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


def serve(role: JobRole, lock: Path = LOCK) -> None:
    """Serve requests forever; return at once if another endpoint runs. Raises CredentialsError."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(lock) as first:
        if first:
            credentials_server(role).serve_forever()
        else:
            log.info("credentials: another endpoint runs")


class CredentialsServer(ThreadingHTTPServer):
    """A server whose backlog holds connections of all of a node's programs, which start within one second.

    With the standard library's backlog of five, the kernel drops the others; they retry after one and three seconds.
    """

    request_queue_size = 1024  # the backlog: several connections for each of a node's CPUs


def credentials_server(role: JobRole, port: int = PORT) -> CredentialsServer:
    """Return a server that accepts connections from now on. Raises CredentialsError."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            user = owner_of(self.client_address[1], "".join(table.read_text(encoding="ascii") for table in _TABLES))
            request = CredentialsRequest(path=self.path, host=self.headers.get("Host", ""), user=user)
            status, document = respond(request, role)
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Do not log requests; decisions are logged where they are made."""

    try:
        return CredentialsServer((HOST, port), Handler)
    except OSError as error:
        raise CredentialsError(f"cannot serve {URI}: {error}") from error


def _is_person(user: int) -> bool:
    return user == 0 or (user >= _FIRST_PERSON and user != _NOBODY)


def _assume(client: Any, arn: str, session: str) -> JobRoleCredentials:
    with aws_errors_as(CredentialsError, f"assume the job role {arn}"):
        held = client.assume_role(RoleArn=arn, RoleSessionName=session, DurationSeconds=_SESSION_S)["Credentials"]
    return JobRoleCredentials(
        access_key=held["AccessKeyId"],
        secret_key=held["SecretAccessKey"],
        token=held["SessionToken"],
        expires=held["Expiration"],
    )
