"""A page of one person, served on loopback: to whoever knows its secret address, and to nobody else.

Other users of this machine can connect, and web pages can make the browser connect. Neither knows the token in the
path; a page of another site is refused by its Host header, even if its name resolves to loopback (DNS rebinding).
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOST = "127.0.0.1"
JSON = "application/json"
_TOKEN_BYTES = 32
_READ_S = 10.0  # a browser sends its request at once
# The page's own files alone; nothing inline, no frames, no forms. Source: CSP level 3.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageResponse:
    """A response: its media type and its body."""

    content_type: str
    body: bytes


def json_response(document: object) -> PageResponse:
    """The document as a response."""
    return PageResponse(content_type=JSON, body=json.dumps(document, ensure_ascii=False).encode())


class PageServer(ThreadingHTTPServer):
    """Serves on a port of loopback, 0 for a free one. `respond`: the response to a path below the secret address.

    None for no such path. Raises OSError if the port is taken.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, respond: Callable[[str], PageResponse | None], port: int = 0) -> None:
        super().__init__((HOST, port), _Handler)
        self.respond = respond
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)

    @property
    def address(self) -> str:
        """The secret address of the page."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def server_bind(self) -> None:
        """Binds without a query for this machine's name, which HTTPServer makes and which may take seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = HOST, self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a browser closes connections as it likes, and the terminal shows the address."""


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    timeout = _READ_S
    server_version, sys_version = "corral", ""

    def do_GET(self) -> None:
        self._send(*self._response())

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self._send(HTTPStatus.METHOD_NOT_ALLOWED, _plain("the page only reads: GET or HEAD"))

    do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_POST

    def _response(self) -> tuple[HTTPStatus, PageResponse]:
        port = self.server.server_port
        if self.headers.get_all("Host", []) not in ([f"{HOST}:{port}"], [f"localhost:{port}"]):
            return HTTPStatus.FORBIDDEN, _plain("the request may come from a web page: its Host header is another's")
        token, slash, path = self.path.partition("?")[0].removeprefix("/").partition("/")
        is_known = hmac.compare_digest(token.encode(), self.server.token.encode())
        found = self.server.respond(path) if is_known and slash else None
        if found is None:
            return HTTPStatus.NOT_FOUND, _plain("no such page - use the whole address that corral dashboard printed")
        return HTTPStatus.OK, found

    def _send(self, status: HTTPStatus, response: PageResponse) -> None:
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: paths hold the token."""


def _plain(text: str) -> PageResponse:
    return PageResponse(content_type="text/plain; charset=utf-8", body=f"{text}\n".encode())
