"""The secret of a box: a random value that never leaves its user, and the keys that are derived from it.

Whoever knows it controls the box, and with it processes on this machine. The access key of the account's owner, those
of instances and those of STS are derived from it, so that nobody can guess one.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass

from corral.box.state.directory import StateDirectory

HEADER = "X-Corral-Box"  # of control requests; its value is the secret
_BYTES = 32
_KEY_LETTERS = 16  # of base 32, after the prefix: 80 bits. Source: IAM User Guide, "IAM identifiers"


@dataclass(frozen=True, slots=True)
class BoxSecret:
    """The secret, and what is derived from it."""

    value: str

    @property
    def owner_key(self) -> str:
        """The access key of the account's owner."""
        return self.access_key("AKIA", "owner")

    @property
    def owner_secret_key(self) -> str:
        """The secret access key of the account's owner."""
        return self.secret_key("owner")

    def access_key(self, prefix: str, *names: str) -> str:
        """The access key with these names, e.g. an instance and its role."""
        return prefix + base64.b32encode(self._digest("access", names)).decode()[:_KEY_LETTERS]

    def secret_key(self, *names: str) -> str:
        """The secret access key with these names: 40 characters, as AWS's have."""
        return base64.b64encode(self._digest("secret", names)).decode()[:40]

    def _digest(self, use: str, names: tuple[str, ...]) -> bytes:
        return hmac.digest(self.value.encode(), "\0".join((use, *names)).encode(), hashlib.sha256)


def create_secret(home: StateDirectory) -> BoxSecret:
    """The secret of this directory. Creates it for a new box; only its owner may read the file."""
    with contextlib.suppress(FileExistsError):
        handle = os.open(home.secret, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(_BYTES))
    return read_secret(home)


def read_secret(home: StateDirectory) -> BoxSecret:
    """The secret of a box that has run. Raises OSError and ValueError."""
    value = home.secret.read_text(encoding="ascii").strip()
    if len(bytes.fromhex(value)) != _BYTES:
        raise ValueError(f"{home.secret} has no secret of {_BYTES} bytes")
    return BoxSecret(value)
