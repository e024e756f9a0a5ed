"""Who may talk to the daemon: programs of the box's user and machines, no web page and no other user. Pure.

A browser sends every page's requests to loopback, with the page's Origin, and a page may rename loopback by DNS
(rebinding), so requests need a host of the box. Control requests also need the box's secret; AWS calls need an access
key, which `access` checks.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from typing import Any

from corral.box.secret import HEADER, BoxSecret

CONTROL = "/_box/"
CALLED = "corral.called"  # the address that a machine called; absent in requests from this host
_LOOPBACK = "127.0.0.1"
_HEADER = f"HTTP_{HEADER.upper().replace('-', '_')}"
# An account (S3 Control) or a bucket before the address. No resolver has such a name: its last label is a number.
# Source: S3 user guide, bucket naming rules.
_FIRST_LABELS = re.compile(r"(?:[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\.)?")
_MOTO_CONTROL = "/moto-api"


def reason_to_refuse(environ: Mapping[str, Any], port: int, secret: BoxSecret) -> str | None:
    """Why the request is refused, as a sentence; None if it is not. `environ`: WSGI's."""
    path = environ.get("PATH_INFO", "")
    if "HTTP_ORIGIN" in environ or environ.get("HTTP_SEC_FETCH_SITE", "none") != "none":
        return "the box answers no web pages"
    if not _is_host(environ.get("HTTP_HOST", ""), environ, port):
        return f"the box is not {environ.get('HTTP_HOST', '')!r} - use the endpoint that `corral box env` prints"
    if path.startswith(_MOTO_CONTROL):
        return f"the box does not serve {_MOTO_CONTROL}"
    if path.startswith(CONTROL):
        if CALLED in environ:
            return "machines do not control the box"
        if not hmac.compare_digest(environ.get(_HEADER, "").encode(), secret.value.encode()):
            return f"a control request needs the box's secret in the header {HEADER}"
    return None


def _is_host(host: str, environ: Mapping[str, Any], port: int) -> bool:
    if called := environ.get(CALLED):
        return host in (called, f"{called}:80")
    ending = f"{_LOOPBACK}:{port}"
    return host.endswith(ending) and _FIRST_LABELS.fullmatch(host.removesuffix(ending)) is not None
