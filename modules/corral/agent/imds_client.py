"""Read a machine's metadata from EC2's instance metadata service, version 2 (IMDSv2).

Source: EC2 User Guide, "Use the Instance Metadata Service to access instance metadata", "Instance identity documents".
"""

import contextlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException

from corral.agent.errors import AgentError

SERVICE = "http://169.254.169.254"
_TOKEN_TTL_S = 60  # one request follows immediately
_TIMEOUT_S = 5  # the service is on the machine's own link and answers in milliseconds
# The service answers late or not at all while a machine is new or busy, and throttles: "retry with exponential backoff"
# (the same page, "Query throttling"). A boot must not fail because of that.
PAUSES_S = (0.5, 1.0, 2.0, 4.0)
_LATER = frozenset({429, 500, 502, 503, 504})

log = logging.getLogger("corral.agent")


class MetadataError(AgentError):
    """The metadata service did not answer."""


class _LaterError(MetadataError):
    """A transient failure: worth a retry."""


def instance_tag(key: str, service: str = SERVICE, pauses_s: Sequence[float] = PAUSES_S) -> str | None:
    """The value of the instance's tag with this key; None if it has no such tag. Raises MetadataError."""
    return read(f"tags/instance/{key}", service, pauses_s)


def account_number(service: str = SERVICE, pauses_s: Sequence[float] = PAUSES_S) -> str:
    """The account that the instance belongs to. Raises MetadataError."""
    document = _read("dynamic/instance-identity/document", service, pauses_s)
    if document is None:
        raise MetadataError(f"the metadata service at {service} has no identity document")
    return str(json.loads(document)["accountId"])


def read(name: str, service: str = SERVICE, pauses_s: Sequence[float] = PAUSES_S) -> str | None:
    """Return the instance's metadata of this name; None if there is none. Raises MetadataError.

    `pauses_s`: the pause before each retry after a timeout or a server error.
    """
    return _read(f"meta-data/{name}", service, pauses_s)


def _read(path: str, service: str, pauses_s: Sequence[float]) -> str | None:
    for pause_s in pauses_s:
        try:
            return _read_once(path, service)
        except _LaterError as error:
            log.info("%s; retrying", error)
            time.sleep(pause_s)
    return _read_once(path, service)


def _read_once(path: str, service: str) -> str | None:
    """By http.client, which ignores proxies. From Python 3.12 on, each opener of urllib reads all certificates."""
    lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_TTL_S)}
    with contextlib.closing(HTTPConnection(service.removeprefix("http://"), timeout=_TIMEOUT_S)) as connection:
        token = _request(connection, "PUT", service, "latest/api/token", lifetime)
        if token is None:
            raise MetadataError(f"the metadata service at {service} gives no token")
        return _request(connection, "GET", service, f"latest/{path}", {"X-aws-ec2-metadata-token": token})


def _request(
    connection: HTTPConnection, method: str, service: str, path: str, headers: Mapping[str, str]
) -> str | None:
    try:
        connection.request(method, f"/{path}", headers=dict(headers))
        answer = connection.getresponse()
        text = str(answer.read(), "utf-8")
    except (OSError, HTTPException) as error:
        raise _LaterError(f"the metadata service did not answer {method} {service}/{path}: {error}") from error
    if answer.status == HTTPStatus.NOT_FOUND:
        return None
    if answer.status != HTTPStatus.OK:
        kind = _LaterError if answer.status in _LATER else MetadataError
        raise kind(f"the metadata service answered {answer.status} to {method} {service}/{path}")
    return text
