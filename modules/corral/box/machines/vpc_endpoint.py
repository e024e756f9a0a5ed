"""The daemon's endpoint for the machines of a VPC: the metadata service or AWS's API, by the called address.

The VPC's process relays every connection and prepends a line with the caller's address (PROXY protocol, version 1).
"""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from werkzeug.serving import BaseWSGIServer, make_server

from corral.box.daemon.http import RequestHandler
from corral.box.daemon.request_guard import CALLED
from corral.box.daemon.wsgi_app import PHRASES
from corral.box.machines.imds import MetadataResponse, MetadataService
from corral.box.vpc.relay import read_proxy_line
from corral.box.vpc.vpc_state import DAEMON_SOCKET, METADATA_ADDRESS

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class VpcRequestHandler(RequestHandler):
    """A connection from within a VPC."""

    disable_nagle_algorithm = False  # these are Unix sockets

    def setup(self) -> None:
        """Read the caller and the called address from the first line."""
        super().setup()
        self.caller, self.called = read_proxy_line(self.rfile.readline(108))

    def address_string(self) -> str:
        """The caller's address, which the Unix socket lacks."""
        return self.caller

    def make_environ(self) -> dict[str, Any]:
        """The request, with the caller's and the called address."""
        environ: dict[str, Any] = super().make_environ()
        return {**environ, "REMOTE_ADDR": self.caller, CALLED: self.called}


def serve_vpc(directory: Path, service: MetadataService, app: Application) -> BaseWSGIServer:
    """A server for the VPC with its sockets in this directory; the caller starts it."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ[CALLED] != METADATA_ADDRESS:
            return app(environ, start_response)
        return _answer_metadata(service, environ, start_response)

    path = directory / DAEMON_SOCKET
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(512)
    return make_server(
        f"unix://{path}", 0, answer, threaded=True, request_handler=VpcRequestHandler, fd=listener.fileno()
    )


def _answer_metadata(
    service: MetadataService, environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    headers = {
        name.removeprefix("HTTP_").replace("_", "-").lower(): str(value)
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
    answer: MetadataResponse = service.answer(
        environ["REMOTE_ADDR"], environ["REQUEST_METHOD"], environ.get("PATH_INFO", ""), headers
    )
    status, named, body = answer
    start_response(f"{status} {PHRASES[status]}", [*named.items(), ("Content-Length", str(len(body)))])
    return [b"" if environ["REQUEST_METHOD"] == "HEAD" else body]
