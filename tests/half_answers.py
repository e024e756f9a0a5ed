"""An HTTP server that ends each connection in the middle of its answer, as a killed server does."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def half_answers() -> Iterator[str]:
    """The URL of the server, for the block."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _HalfAnswer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


class _HalfAnswer(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        """Reads the whole request, and sends the first header only."""
        length = 0
        while (line := self.rfile.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        self.rfile.read(length)
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n")
