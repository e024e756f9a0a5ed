"""The HTTP connection handler; `wsgi_app` answers the requests."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from typing import Any

from moto.moto_server.werkzeug_app import MotoRequestHandler


class RequestHandler(MotoRequestHandler):
    """A keep-alive connection without Nagle's algorithm, which adds 40 ms to each answer."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Log nothing: `api_calls` logs the calls."""
