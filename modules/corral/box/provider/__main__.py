"""`python -m corral.box.provider`: serves the engine that started it; with --types, prints what is covered."""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from corral.box.provider import sdk_version
from corral.box.provider.service import AwsService

THREADS = 32  # creations that wait hold one each; the engine runs at most 4 per core at once
LARGEST_MESSAGE = 400 << 20  # bytes; what the engine itself allows


def serve(port: int = 0) -> tuple[grpc.Server, int]:
    """A running server and its port."""
    limits = [("grpc.max_receive_message_length", LARGEST_MESSAGE), ("grpc.max_send_message_length", LARGEST_MESSAGE)]
    server = grpc.server(ThreadPoolExecutor(THREADS), options=limits)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(AwsService(sdk_version()), server)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server, bound


def main() -> None:
    """Serves until the engine goes away."""
    if "--types" in sys.argv[1:]:
        from corral.box.provider.listing import listing

        sys.stdout.write(listing())
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # so the engine ends its plugins; Python would print a traceback
    _end_with_engine()
    server, port = serve()
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
    os._exit(0)


if __name__ == "__main__":
    main()
