"""`python -m corral.engine.pulumi.language_host ENGINE`: serves the engine at that address until it goes away."""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
from pulumi.runtime.proto import language_pb2_grpc

from corral.engine.pulumi.language_host.service import LanguageService

THREADS = 8  # one runs the program, the others answer calls meanwhile


def main() -> None:
    """Prints the port and serves."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # so the engine ends its plugins; Python would print a traceback
    addresses = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    service = LanguageService(addresses[-1] if addresses else "")
    server = grpc.server(ThreadPoolExecutor(THREADS))
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    _end_with_engine()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    server.wait_for_termination()


def _end_with_engine() -> None:
    """Ends this process when the engine's end of our standard input closes, as it does even with kill -9."""
    if stat.S_ISFIFO(os.fstat(0).st_mode):
        threading.Thread(target=_await_end_of_input, daemon=True).start()


def _await_end_of_input() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)  # the program sees the end of its own input in turn


if __name__ == "__main__":
    main()
