"""The files of a cluster's configuration with their hashes. Written last: its presence means that all files exist.

Serialised, this is manifest.json.
"""

from collections.abc import Mapping
from dataclasses import dataclass

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """`files`: SHA-256 in hexadecimal digits, by path below the cluster's prefix. `bundle`, `library`: the agent's."""

    files: Mapping[str, str]
    bundle: str
    bundle_sha256: str
    library: str
    library_sha256: str
