"""The cluster's munge key in Secrets Manager: the head creates it once, nodes wait for it.

Only the machines' roles can read it. It is never in user data, Pulumi state or the bucket.
"""

import secrets
import time
from collections.abc import Callable
from typing import Any

from corral.agent.aws_errors import aws_errors_as
from corral.agent.errors import AgentError

KEY_BYTES = 128  # 1024 bits, what `mungekey` makes
_AWAITED_S = 600  # a node may boot faster than a head that is launched with it
_STEP_S = 2.0


class SecretError(AgentError):
    """The munge key cannot be read or written."""


def make_munge_key(client: Any, secret: str) -> bytes:
    """Return the cluster's key; create it if the secret is empty. Raises SecretError."""
    held = _read(client, secret)
    if held is not None:
        return held
    with aws_errors_as(SecretError, f"write {secret}"):
        client.put_secret_value(SecretId=secret, SecretBinary=secrets.token_bytes(KEY_BYTES))
    # Read it back: another head may have written first.
    return await_munge_key(client, secret)


def await_munge_key(client: Any, secret: str, sleep: Callable[[float], None] = time.sleep) -> bytes:
    """Wait for the head to create the cluster's key and return it. Raises SecretError on timeout or missing access."""
    for _ in range(int(_AWAITED_S / _STEP_S)):
        if (held := _read(client, secret)) is not None:
            return held
        sleep(_STEP_S)
    raise SecretError(f"{secret} has no munge key after {_AWAITED_S} s - check that the head has booted")


def _read(client: Any, secret: str) -> bytes | None:
    with aws_errors_as(SecretError, f"read {secret}"):
        try:
            answer = client.get_secret_value(SecretId=secret)
        except client.exceptions.ResourceNotFoundException:  # also raised for a secret without a value
            return None
    if "SecretString" in answer:
        raise SecretError(f"{secret} contains text, not a munge key - find out who wrote it")
    if "SecretBinary" not in answer:  # botocore reads half a JSON document as an empty one
        raise SecretError(f"cannot read {secret}: the response is incomplete")
    return bytes(answer["SecretBinary"])
