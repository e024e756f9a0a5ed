"""What a machine asks EC2's metadata service about itself, by version 2 of its protocol.

Source: EC2 User Guide, "Use the Instance Metadata Service to access instance metadata".
"""

import logging
import time
import urllib.error
import urllib.request
from collections.abc import Sequence

from corral.agent.errors import AgentError

SERVICE = "http://169.254.169.254"
_TOKEN_LIFE_S = 60  # one question follows at once
_TIMEOUT_S = 5  # the service is on the machine's own link and answers in milliseconds
# It answers late or not at all while a machine is new or busy, and refuses who asks too often: "retry with exponential
# backoff" (the same page, "Query throttling"). A boot must not fail for that.
PAUSES_S = (0.5, 1.0, 2.0, 4.0)
_LATER = frozenset({429, 500, 502, 503, 504})

log = logging.getLogger("corral.agent")


class MetadataError(AgentError):
    """The metadata service did not answer."""


class _LaterError(MetadataError):
    """Nor need it mean anything: it may answer in a moment."""


def instance_tag(key: str, service: str = SERVICE, pauses_s: Sequence[float] = PAUSES_S) -> str | None:
    """The value of one of the instance's tags; None if it has no such tag. Raises MetadataError."""
    return read(f"tags/instance/{key}", service, pauses_s)


def read(name: str, service: str = SERVICE, pauses_s: Sequence[float] = PAUSES_S) -> str | None:
    """What the instance's metadata say under this name; None if nothing. Raises MetadataError.

    `pauses_s`: before each further question, where the service answers late or with a failure of its own.
    """
    lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_LIFE_S)}
    token = _ask(f"{service}/latest/api/token", "PUT", lifetime, pauses_s)
    if token is None:
        raise MetadataError(f"the metadata service at {service} gives no token")
    return _ask(f"{service}/latest/meta-data/{name}", "GET", {"X-aws-ec2-metadata-token": token}, pauses_s)


def _ask(url: str, method: str, headers: dict[str, str], pauses_s: Sequence[float]) -> str | None:
    for pause_s in pauses_s:
        try:
            return _ask_once(url, method, headers)
        except _LaterError as error:
            log.info("%s; asked again", error)
            time.sleep(pause_s)
    return _ask_once(url, method, headers)


def _ask_once(url: str, method: str, headers: dict[str, str]) -> str | None:
    request = urllib.request.Request(url, method=method, headers=headers)
    # Never through a proxy that the environment names: the answer is about this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_TIMEOUT_S) as answer:
            return str(answer.read(), "utf-8")
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 404:
                return None
            kind = _LaterError if error.code in _LATER else MetadataError
            raise kind(f"the metadata service answered {error.code} to {method} {url}") from error
    except OSError as error:
        raise _LaterError(f"the metadata service did not answer {method} {url}: {error}") from error
