"""The cluster's munge key: the head makes it once, in Secrets Manager; whoever else needs it waits for it there.

Nobody but the machines' own roles reads it: it is in no user data, no state of Pulumi's and no bucket.
"""

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from corral.agent.errors import AgentError

KEY_BYTES = 128  # 1024 bits, what `mungekey` makes
_AWAITED_S = 600  # a node that is launched with its cluster may be faster than the head
_STEP_S = 2.0


class SecretError(AgentError):
    """The key cannot be had."""


def make_munge_key(client: Any, secret: str) -> bytes:
    """The cluster's key; made where the secret is still empty. Raises SecretError."""
    held = _read(client, secret)
    if held is not None:
        return held
    with _explained(secret, "written"):
        client.put_secret_value(SecretId=secret, SecretBinary=secrets.token_bytes(KEY_BYTES))
    # What counts is what is stored: another head may have been faster.
    return await_munge_key(client, secret)


def await_munge_key(client: Any, secret: str, sleep: Callable[[float], None] = time.sleep) -> bytes:
    """The cluster's key, once the head has made it. Raises SecretError where it does not come or may not be read."""
    for _ in range(int(_AWAITED_S / _STEP_S)):
        if (held := _read(client, secret)) is not None:
            return held
        sleep(_STEP_S)
    raise SecretError(f"{secret} holds no munge key after {_AWAITED_S} s - does the head run?")


def _read(client: Any, secret: str) -> bytes | None:
    with _explained(secret, "read"):
        try:
            answer = client.get_secret_value(SecretId=secret)
        except client.exceptions.ResourceNotFoundException:  # a secret without a value is not found
            return None
    if "SecretBinary" not in answer:
        raise SecretError(f"{secret} holds text, which is no munge key - who wrote it?")
    return bytes(answer["SecretBinary"])


@contextmanager
def _explained(secret: str, done: str) -> Iterator[None]:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise SecretError(f"{secret} cannot be {done}: {error}") from error
