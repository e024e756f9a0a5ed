"""Whether AWS itself answers a boto3 client, and how long to wait for it."""

from __future__ import annotations

import json
import re
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ConnectTimeoutError, ReadTimeoutError

CONNECT_S = 5  # AWS accepts a connection within 0.5 s from anywhere
READ_S = 20  # the longest page of a describe takes some seconds; so do calls to a box on a busy machine
TRIES = 2  # of a request without a response; boto3 retries throttled requests as usual
QUICK = Config(connect_timeout=CONNECT_S, read_timeout=READ_S)

# An HTML page, as portals and proxies return. The content type proves nothing: the box returns XML with the same one.
_PAGE = re.compile(rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<(!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL)


class NotAws(BotoCoreError):
    """Something other than AWS answered. A botocore error, so handlers of those catch it."""

    fmt = "{endpoint} is not AWS: {answer} - check for a proxy or portal in between"


def watched(client: Any, *, quick: bool) -> Any:
    """The same client, which raises NotAws for an answer that AWS cannot have given.

    `quick`: tries a silent endpoint TRIES times; for read-only clients with QUICK.
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
    """A description of a response that no AWS service of this protocol returns; None for one that may be AWS's.

    botocore raises an error for every status from 500 on: AWS's load balancers answer with HTML pages, too.
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
