"""What answers a client of boto3: whether it is AWS at all, and how long one waits for it."""

from __future__ import annotations

import json
import re
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ConnectTimeoutError, ReadTimeoutError

CONNECT_S = 5  # AWS takes a connection in 0.1 s, from anywhere in 0.5 s
READ_S = 20  # the longest page of a describe takes some seconds; so do calls to a box on a busy machine
TRIES = 2  # of a question that nobody answers; what AWS answers with "slow down" is asked again as often as ever
QUICK = Config(connect_timeout=CONNECT_S, read_timeout=READ_S)

# A page for browsers, as portals and proxies answer. Its content type is no sign: a box answers XML by the same one.
_PAGE = re.compile(rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<(!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL)


class NotAws(BotoCoreError):
    """Something else than AWS answered. It is one of botocore's errors, so that who foresees those foresees it."""

    fmt = "what answers at {endpoint} is not AWS: {answer} - a proxy or portal may be in between"


def watched(client: Any, *, quick: bool) -> Any:
    """The same client, which raises NotAws for an answer that AWS cannot have given.

    `quick`: it asks a silent endpoint TRIES times; for clients with QUICK, that only read.
    """
    endpoint = client.meta.endpoint_url

    def look(operation_model: Any, response_dict: Any, **_: Any) -> None:
        if operation_model.has_streaming_output:
            return
        answer = not_aws(operation_model.service_model.resolved_protocol, response_dict)
        if answer:
            raise NotAws(endpoint=endpoint, answer=answer)

    client.meta.events.register("before-parse", look)
    if quick:
        client.meta.events.register_first("needs-retry", _give_up)
    return client


def not_aws(protocol: str, response: Any) -> str | None:
    """What an answer is that no service of this protocol gives; None for one that may be AWS's.

    From 500 on any answer is an error for botocore: load balancers of AWS answer with pages, too.
    """
    body, status = bytes(response["body"] or b""), int(response["status_code"])
    if status >= 500:
        return None
    if _PAGE.match(body):
        return f"it answers with a page for browsers ({status})"
    if protocol == "json" and body.strip() and not _is_json(body):
        return f"it answers with something else than JSON ({status})"
    return None


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except ValueError:
        return False
    return True


def _give_up(attempts: int, caught_exception: BaseException | None = None, **_: Any) -> None:
    if attempts >= TRIES and isinstance(caught_exception, ConnectTimeoutError | ReadTimeoutError):
        raise caught_exception
