"""A forward proxy through which apt in a machine reads the host's Debian mirrors, and nothing else.

`debian_mirrors` decides what a machine may have, and `package_cache` keeps what never changes. The VPC's process
relays the machines' connections to a Unix socket, each with a line that has the caller's address.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from urllib.parse import unquote, urlsplit

import urllib3
from urllib3 import BaseHTTPResponse, HTTPHeaderDict
from urllib3.exceptions import HTTPError

from corral.box.vm.debian_mirrors import DebianMirrors, ForbiddenRequestError, MirrorFile, requested_file
from corral.box.vm.package_cache import BLOCK, MirrorError, PackageCache
from corral.box.vpc.relay import read_proxy_line

_START = 4 * BLOCK  # bytes read before the answer starts: a failure until then has a status and a text
_TIMEOUT = urllib3.Timeout(connect=5, read=20)  # seconds, below the 30 after which apt ends the connection
_REQUEST_HEADERS = ("If-Modified-Since", "If-None-Match", "Range", "If-Range", "Cache-Control")
_ANSWER_HEADERS = (
    "Content-Length",
    "Content-Type",
    "Content-Encoding",
    "Content-Range",
    "Accept-Ranges",
    "Last-Modified",
    "ETag",
)
_IDLE = 8  # connections to a mirror that are kept
_REDIRECTS = (301, 302, 303, 307, 308)
_WITHOUT_BODY = (204, 304)

Refuses = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    blocks: Generator[bytes]


class PackageServer(ThreadingUnixStreamServer):
    """The proxy on its socket."""

    daemon_threads = True
    request_queue_size = 512  # connections

    def __init__(self, socket_path: Path, mirrors: DebianMirrors, cache: Path, refuses: Refuses) -> None:
        self.mirrors = mirrors
        self.refuses = refuses
        self._pools: dict[str | None, urllib3.PoolManager] = {
            mirror.proxy: _pool(mirror.proxy) for mirror in (mirrors.archive, mirrors.security)
        }
        self.cache = PackageCache(cache, self.fetch)
        super().__init__(str(socket_path), _PackageRequestHandler)

    def fetch(self, method: str, file: MirrorFile, headers: Mapping[str, str]) -> BaseHTTPResponse:
        """The mirror's answer, with its body unread. Raises urllib3's HTTPError."""
        return self._pools[file.proxy].request(
            method,
            file.url,
            headers={"Accept-Encoding": "identity", "User-Agent": "Debian APT-HTTP/1.3 (corral)", **headers},
            timeout=_TIMEOUT,
            redirect=False,
            retries=False,
            preload_content=False,
            decode_content=False,
        )

    def server_close(self) -> None:
        """Close the socket and the idle connections to the mirrors."""
        super().server_close()
        for pool in self._pools.values():
            pool.clear()


def serve_packages(
    socket_path: Path,
    mirrors: DebianMirrors,
    cache: Path,
    *,
    refuses: Refuses = lambda address, path: False,
) -> PackageServer:
    """A proxy on this socket, with its cache in this directory; the caller starts and closes it.

    If `refuses` is true for a machine's address and a URL of the mirror, the machine gets an error of the mirror.
    """
    socket_path.unlink(missing_ok=True)
    return PackageServer(socket_path, mirrors, cache, refuses)


class _PackageRequestHandler(BaseHTTPRequestHandler):
    """A machine's connection."""

    protocol_version = "HTTP/1.1"
    timeout = 300  # seconds without a request, or in which the machine takes no byte
    server: PackageServer

    def handle(self) -> None:
        """Read the line with the caller's address, then the requests."""
        with contextlib.suppress(ConnectionError, TimeoutError):
            self._caller, _ = read_proxy_line(self.rfile.readline(108))
            super().handle()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def _serve(self) -> None:
        try:
            file = requested_file(self.server.mirrors, self.command, self.path)
            if self.server.refuses(self._caller, file.url):
                return self._send_error(503, "the mirror is away (a fault of the box)")
            self._send(self._answer(file))
        except ForbiddenRequestError as error:
            self._send_error(403, str(error))
        except MirrorError as error:
            self._send_error(error.status, str(error))

    # What http.server calls. With other methods it answers 501.
    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_CONNECT = _serve

    def _answer(self, file: MirrorFile) -> _Answer:
        """The cached file, whole whatever range is requested, or else the mirror's answer. Raises MirrorError."""
        if file.cached_as and self.command == "GET":
            cached = self.server.cache.get(file, file.cached_as)
            if cached:
                return _Answer(status=200, headers={"Content-Length": str(cached.length)}, blocks=cached.blocks)
        try:
            response = self.server.fetch(self.command, file, _picked(self.headers, _REQUEST_HEADERS))
        except HTTPError as error:
            raise MirrorError.of(file.url, error) from error
        if response.status in _REDIRECTS:
            response.close()
            target = response.headers.get("Location")
            raise MirrorError(502, f"{file.url} redirects to {target}: set CORRAL_DEBIAN_MIRROR to where the files are")
        return _Answer(
            status=response.status, headers=_picked(response.headers, _ANSWER_HEADERS), blocks=_body(file.url, response)
        )

    def _send(self, answer: _Answer) -> None:
        """Send the answer. Raises MirrorError before its first byte; after that, a failure ends the connection."""
        with contextlib.closing(answer.blocks) as blocks:
            start = b""
            while len(start) < _START and (block := next(blocks, b"")):
                start += block
            self._send_head(answer)
            try:
                self.wfile.write(start)
                for block in blocks:
                    self.wfile.write(block)
            except MirrorError:
                self.close_connection = True

    def _send_head(self, answer: _Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if "Content-Length" not in answer.headers and answer.status not in _WITHOUT_BODY:
            self.send_header("Connection", "close")  # which is where the body ends
        self.end_headers()

    def _send_error(self, status: int, text: str) -> None:
        """Send an error. apt prints the status line, so the text is there too, as one line of ASCII."""
        line = " ".join(text.split()).encode("ascii", "replace")
        body = line + b"\n"
        self.send_response(status, line.decode())
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")  # the request's body, if any, is unread
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _pool(proxy: str | None) -> urllib3.PoolManager:
    if not proxy:
        return urllib3.PoolManager(maxsize=_IDLE)
    user = urlsplit(proxy)
    login = f"{unquote(user.username)}:{unquote(user.password or '')}" if user.username else None
    return urllib3.ProxyManager(proxy, maxsize=_IDLE, proxy_headers=urllib3.make_headers(proxy_basic_auth=login))


def _body(url: str, response: BaseHTTPResponse) -> Generator[bytes]:
    """The body's bytes. Raises MirrorError, also if the body is shorter than its length."""
    with contextlib.closing(response):
        try:
            yield from response.stream(BLOCK)
        except HTTPError as error:
            raise MirrorError.of(url, error) from error


def _picked(headers: Message | HTTPHeaderDict, names: Sequence[str]) -> Mapping[str, str]:
    return {name: headers[name] for name in names if name in headers}
