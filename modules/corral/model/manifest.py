"""The files of a cluster's configuration with their hashes. Written last: its presence means that all files exist.

Serialised and signed, this is manifest.json. Machines run what it names as root, so they believe the signature of the
base's key and not the bucket.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """`files`: SHA-256 in hexadecimal digits, by path below the cluster's prefix. `bundle`, `library`: the agent's.

    `version`: seconds since the epoch when these files were first deployed; it only rises.
    """

    version: int
    files: Mapping[str, str]
    bundle: str
    bundle_sha256: str
    library: str
    library_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedManifest:
    """`manifest`: the manifest as JSON text. `signature`: of `statement`, in base64."""

    manifest: str
    signature: str


def statement(prefix: str, manifest: str) -> bytes:
    """Return the text that is signed: whose manifest this is, and its hash.

    The prefix keeps the manifest of one cluster from machines of another that shares the key. KMS signs 4,096 bytes.
    """
    digest = hashlib.sha256(manifest.encode()).hexdigest()
    return f"corral manifest of {prefix}: sha256 {digest}\n".encode()
