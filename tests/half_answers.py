"""An HTTP server that ends each connection in the middle of its answer, as a killed server does."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

HALF_A_HEADER = b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n"
HALF_A_BODY = HALF_A_HEADER + b"Content-Length: 400\r\n\r\n<Answer><Half>{"


@contextmanager
def half_answers(part: bytes = HALF_A_HEADER) -> Iterator[str]:
    """The URL of the server, for the block. `part`: what each answer is."""

    class Handler(_HalfAnswer):
        answer = part

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


class _HalfAnswer(socketserver.StreamRequestHandler):
    answer = b""

    def handle(self) -> None:
        """Reads the whole request, and sends a part of the answer."""
        length = 0
        while (line := self.rfile.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        self.rfile.read(length)
        self.wfile.write(self.answer)
