"""A local endpoint for the job role's credentials, `corral-agent credentials`.

It speaks the protocol of ECS's agent, so every AWS SDK finds it by AWS_CONTAINER_CREDENTIALS_FULL_URI. Only root uses
the machine's own role. `local_http` knows the user of each request.
Sources: AWS SDKs and Tools Reference Guide, "Container credential provider"; STS API reference, AssumeRole; IAM User
Guide, "Roles terms and concepts" (role chaining: an hour at most).
"""

import asyncio
import contextlib
import json
import logging
import pwd
import re
import socket
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from corral.agent.aws_errors import aws_errors_as
from corral.agent.errors import AgentError
from corral.agent.local_http import HOST, LocalRequest, LocalResponse, LocalServer, listen
from corral.agent.process_lock import exclusive
from corral.agent.user_rights import is_person
from corral.model.job_role import PATH, PORT

LOCK = Path("/run/corral/credentials.lock")
_SESSION_S = 3600  # role chaining limits a session to an hour
_FRESH_FOR = timedelta(minutes=10)  # SDKs refresh some minutes before the expiry
_WAIT_S = 1.5  # botocore gives up after 2 s, and asks again a second later (ContainerMetadataFetcher)
_REFRESHES = 8  # concurrent calls of STS, one for a user, and so threads

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


async def respond(request: LocalRequest, role: JobRole) -> tuple[int, Mapping[str, str]]:
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


def serve(role: JobRole, lock: Path = LOCK) -> None:
    """Serve requests forever; return at once if another endpoint runs. Raises LocalServerError."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(lock) as first:
        if first:
            with listen(PORT) as listener:
                asyncio.run(credentials_server(role, listener).serve_forever())
        else:
            log.info("credentials: another endpoint runs")


def credentials_server(role: JobRole, listener: socket.socket) -> LocalServer:
    """The endpoint of this role, with a server's own limits of time and number."""
    return LocalServer(responder(role), listener)


def responder(role: JobRole) -> Callable[[LocalRequest], Awaitable[LocalResponse]]:
    """What answers requests for this role's credentials, as JSON."""

    async def answer(request: LocalRequest) -> LocalResponse:
        status, document = await respond(request, role)
        return LocalResponse(status=status, body=json.dumps(document).encode(), content_type="application/json")

    return answer


def _assume(client: Any, arn: str, session: str) -> JobRoleCredentials:
    with aws_errors_as(CredentialsError, f"assume the job role {arn}"):
        held = client.assume_role(RoleArn=arn, RoleSessionName=session, DurationSeconds=_SESSION_S)["Credentials"]
    return JobRoleCredentials(
        access_key=held["AccessKeyId"],
        secret_key=held["SecretAccessKey"],
        token=held["SessionToken"],
        expires=held["Expiration"],
    )
