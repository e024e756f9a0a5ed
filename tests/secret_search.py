"""How a secret may be written in a file, a log or an answer, and what of it a content holds."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from functools import cache
from urllib.parse import quote


@cache
def written_forms(secret: bytes) -> tuple[bytes, ...]:
    """The secret as it is, in hex, JSON and URLs, and in base64 at each of the three offsets within a longer text."""
    shifted = (base64.b64encode(b"\0" * shift + secret)[4 if shift else 0 :][: len(secret)] for shift in range(3))
    text = secret.decode("utf-8", "surrogateescape")
    in_json = json.dumps(text)[1:-1].encode()
    return tuple(dict.fromkeys((secret, secret.hex().encode(), *shifted, in_json, quote(secret, safe="").encode())))


def secrets_in(content: bytes, secrets: Mapping[str, bytes]) -> list[str]:
    """The names of the secrets that the content holds in one of these forms, also if it is compressed."""
    unpacked = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    return [name for name, secret in secrets.items() if any(form in unpacked for form in written_forms(secret))]
