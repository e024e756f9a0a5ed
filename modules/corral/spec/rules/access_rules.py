"""Rules about SSH access: public keys, never private ones."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from corral.spec.models.cluster import AccessSpec
from corral.spec.spec_errors import SpecFinding, SpecProblem

_TYPES = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")
_TYPES_OF_HARDWARE = ("sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com")


def check(access: AccessSpec) -> Iterator[SpecFinding]:
    """Yield findings about these keys."""
    for number, key in enumerate(access.ssh_keys):
        if problem := _key_problem(key):
            yield problem.at(("access", "ssh_keys", number))
        elif key.split()[:2] in [other.split()[:2] for other in access.ssh_keys[:number]]:
            yield SpecFinding(("access", "ssh_keys", number), "is listed twice", "keep one")


def _key_problem(key: str) -> SpecProblem | None:
    if "PRIVATE KEY" in key:
        return SpecProblem(
            "is a private key, which must never leave its owner",
            "use the line of the .pub file, and generate a new pair",
        )
    type, _, rest = key.strip().partition(" ")
    if type not in (*_TYPES, *_TYPES_OF_HARDWARE) or "\n" in key.strip():
        return SpecProblem("is not a public key", "use the line of the .pub file, such as ssh-ed25519 AAAA... you@host")
    try:
        content = base64.b64decode(rest.split(" ")[0], validate=True)
    except (binascii.Error, IndexError):
        content = b""
    inner = content[4 : 4 + int.from_bytes(content[:4])]
    return (
        None
        if inner.decode(errors="replace") == type
        else SpecProblem("is incomplete or damaged", "copy the line of the .pub file again")
    )
