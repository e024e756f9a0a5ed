"""What machines in a VPC reach of the daemon: the metadata service and AWS's API, each by the address they called.

The VPC's keeper passes every connection on with a first line that says who calls (the PROXY protocol, version 1).
"""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from werkzeug.serving import BaseWSGIServer, make_server

from corral.box.front import PHRASES
from corral.box.http import Handler
from corral.box.metadata import Answer, Service
from corral.box.vpc.keeper import METADATA, OUTSIDE

_CALLED = "corral.called"

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Inside(Handler):
    """A connection from within a VPC."""

    disable_nagle_algorithm = False  # these are Unix sockets

    def setup(self) -> None:
        """Reads the first line, and who called whom from it."""
        super().setup()
        self.caller, self.called = _read_proxy_line(self.rfile.readline(108))

    def address_string(self) -> str:
        """Who calls; the socket itself has no address."""
        return self.caller

    def make_environ(self) -> dict[str, Any]:
        """The request, with the true caller and the address that was called."""
        environ: dict[str, Any] = super().make_environ()
        return {**environ, "REMOTE_ADDR": self.caller, _CALLED: self.called}


def serve_inside(directory: Path, service: Service, front: Application) -> BaseWSGIServer:
    """A server for the machines of the VPC whose sockets are in this directory; it does not serve yet."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ[_CALLED] != METADATA:
            return front(environ, start_response)
        return _tell(service, environ, start_response)

    place = directory / OUTSIDE
    place.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place))
    listener.listen(512)
    return make_server(f"unix://{place}", 0, answer, threaded=True, request_handler=Inside, fd=listener.fileno())


def _tell(service: Service, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    headers = {
        name.removeprefix("HTTP_").replace("_", "-").lower(): str(value)
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
    answer: Answer = service.answer(
        environ["REMOTE_ADDR"], environ["REQUEST_METHOD"], environ.get("PATH_INFO", ""), headers
    )
    status, named, body = answer
    start_response(f"{status} {PHRASES[status]}", [*named.items(), ("Content-Length", str(len(body)))])
    return [b"" if environ["REQUEST_METHOD"] == "HEAD" else body]


def _read_proxy_line(line: bytes) -> tuple[str, str]:
    """Source: HAProxy's proxy-protocol.txt, section 2.1."""
    words = line.decode("ascii", "replace").split()
    if len(words) != 6 or words[:2] != ["PROXY", "TCP4"]:
        raise ConnectionError(f"{line!r} does not say who calls")
    return words[2], words[3]
