"""The webhook of a chat, by HTTPS: `PATH DIRECTORY`. Each document that arrives is a line of DIRECTORY/messages.

Slack answers `ok` to a message, and 404 at the path of a webhook that it does not know. The directory has the key and
the certificate.
"""

from __future__ import annotations

import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PATH, DIRECTORY = sys.argv[1], Path(sys.argv[2])


class Webhook(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        known = self.path == PATH
        if known:
            with (DIRECTORY / "messages").open("a") as messages:
                messages.write(json.dumps(json.loads(content)) + "\n")
        self.send_response(200 if known else 404)
        self.end_headers()
        self.wfile.write(b"ok" if known else b"no_service")

    def log_message(self, *_: Any) -> None:
        """Nothing: paths are secret."""


if __name__ == "__main__":
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(DIRECTORY / "cert.pem", DIRECTORY / "key.pem")
    with ThreadingHTTPServer(("", 443), Webhook) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.serve_forever()
