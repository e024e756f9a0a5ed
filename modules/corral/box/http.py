"""How requests are read from the loopback address; what they mean is decided in `front`."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from typing import Any

from moto.moto_server.werkzeug_app import MotoRequestHandler


class Handler(MotoRequestHandler):
    """One connection, kept open between calls and without the 40 ms that Nagle's algorithm adds to each answer."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Nothing: `calls` logs what was called."""
