"""The job role's credentials for whoever works on this machine: a local endpoint, `corral-agent credentials`.

It answers as ECS's agent does, so every AWS SDK finds it by one variable, AWS_CONTAINER_CREDENTIALS_FULL_URI; the
machine's own role stays root's. Who asks is known by the kernel: connections of this machine have an owner.
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

from corral.agent.alone import alone
from corral.agent.errors import AgentError

# Only root can take a port below 1024, so no user can pose as this endpoint; Lustre's sockets take those from 512 on
# (LNet, `socklnd`), and old NFS clients those from 665 on.
HOST, PORT = "127.0.0.1", 250
PATH = "/credentials"
URI = f"http://{HOST}:{PORT}{PATH}"
LOCK = Path("/run/corral/credentials.lock")
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LIFE_S = 3600  # a role that was taken on by another role ends after an hour
_FRESH_FOR = timedelta(minutes=10)  # SDKs ask again some minutes before the end
_FIRST_PERSON = 1000  # below are the system's own users. Source: login.defs of Debian and Red Hat, UID_MIN
_NOBODY = 65534

log = logging.getLogger("corral.agent")


class CredentialsError(AgentError):
    """The job role cannot be had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Credentials of the job role, as STS gave them."""

    access_key: str
    secret_key: str
    token: str
    expires: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request: the path and the host that it names, and the user who sent it; None where nobody here did."""

    path: str
    host: str
    user: int | None


@dataclass(slots=True)
class Role:
    """The job role for one user each, asked for as seldom as its credentials last.

    `assume`: new credentials for a session of this name; raises CredentialsError.
    """

    assume: Callable[[str], Credentials]
    clock: Callable[[], datetime]
    _held: dict[str, Credentials]
    _lock: threading.Lock

    def of(self, session: str) -> Credentials:
        """Credentials that are good for ten minutes at least."""
        with self._lock:
            held = self._held.get(session)
            if held is None or held.expires - self.clock() < _FRESH_FOR:
                held = self._held[session] = self.assume(session)
                log.info("credentials %s: good until %s", session, held.expires.isoformat())
            return held


def role(client: Any, arn: str, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Role:
    """The role as an STS client gives it."""
    return Role(lambda session: _assume(client, arn, session), clock, {}, threading.Lock())


def answer(question: Question, role: Role) -> tuple[int, Mapping[str, str]]:
    """The status and the document that a question gets. Raises nothing: SDKs show the document of a failure."""
    if question.path != PATH:
        return 404, {"message": f"{question.path} is nothing here, the job role's credentials are at {PATH}"}
    if question.host not in (f"{HOST}:{PORT}", f"localhost:{PORT}"):
        return 403, {"message": f"asked as {question.host!r}: a web page may have been made to ask"}
    if question.user is None or not _is_person(question.user):
        return 403, {"message": "the job role is for root and for people, not for the system's own users"}
    try:
        held = role.of(session_name(question.user))
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
    """What CloudTrail shows of a user: the name, or the number where it has none; in letters that STS takes."""
    try:
        name = (name_of or (lambda number: pwd.getpwuid(number).pw_name))(user)
    except KeyError:
        name = f"uid-{user}"
    return re.sub(r"[^\w+=,.@-]", "-", name, flags=re.ASCII)[:64].ljust(2, "-")


def owner_of(port: int, connections: str) -> int | None:
    """The user of the connection from this local port to the endpoint, by /proc/net/tcp and tcp6; None without one.

    A program that speaks IPv6 alone, as Java does, comes as ::ffff:127.0.0.1, which ends as the address does.
    """
    here = "".join(f"{int(part):02X}" for part in reversed(HOST.split(".")))
    for line in connections.splitlines():
        fields = line.split()
        if fields[1].endswith(f"{here}:{port:04X}") and fields[2].endswith(f"{here}:{PORT:04X}"):
            return int(fields[7])
    return None


def serve(role: Role, lock: Path = LOCK) -> None:
    """Answers for ever; returns at once where another endpoint does. Raises CredentialsError."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with alone(lock) as first:
        if first:
            endpoint(role).serve_forever()
        else:
            log.info("credentials: another endpoint runs")


class Endpoint(ThreadingHTTPServer):
    """A server that takes connections of all of a node's programs at once, as they begin in one second.

    With the standard library's five the kernel drops those beyond, which try again after a second, and after three.
    """

    request_queue_size = 1024  # connections that wait: one for each of a node's CPUs, several times over


def endpoint(role: Role, port: int = PORT) -> Endpoint:
    """The server, which takes connections from now on. Raises CredentialsError."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            user = owner_of(self.client_address[1], "".join(table.read_text(encoding="ascii") for table in _TABLES))
            question = Question(path=self.path, host=self.headers.get("Host", ""), user=user)
            status, document = answer(question, role)
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """What is worth a line is logged where it is decided."""

    try:
        return Endpoint((HOST, port), Handler)
    except OSError as error:
        raise CredentialsError(f"{URI} cannot be served: {error}") from error


def _is_person(user: int) -> bool:
    return user == 0 or (user >= _FIRST_PERSON and user != _NOBODY)


def _assume(client: Any, arn: str, session: str) -> Credentials:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        held = client.assume_role(RoleArn=arn, RoleSessionName=session, DurationSeconds=_LIFE_S)["Credentials"]
    except (BotoCoreError, ClientError) as error:
        raise CredentialsError(f"the job role {arn} cannot be taken on: {error}") from error
    return Credentials(
        access_key=held["AccessKeyId"],
        secret_key=held["SecretAccessKey"],
        token=held["SessionToken"],
        expires=held["Expiration"],
    )
