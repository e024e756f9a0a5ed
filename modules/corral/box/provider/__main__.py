"""`python -m corral.box.provider`: serve the engine that started it; with --types, print the supported types."""

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

THREADS = 32  # each waiting creation holds one; the engine runs at most 4 per core at once
LARGEST_MESSAGE = 400 << 20  # bytes, the engine's own limit


def serve(port: int = 0) -> tuple[grpc.Server, int]:
    """A running server and its port."""
    limits = [("grpc.max_receive_message_length", LARGEST_MESSAGE), ("grpc.max_send_message_length", LARGEST_MESSAGE)]
    server = grpc.server(ThreadPoolExecutor(THREADS), options=limits)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(AwsService(sdk_version()), server)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server, bound


def main() -> None:
    """Serve until the engine ends."""
    if "--types" in sys.argv[1:]:
        from corral.box.provider.coverage import list_coverage

        sys.stdout.write(list_coverage())
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the engine ends its plugins; Python would print a traceback
    _exit_with_engine()
    server, port = serve()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    server.wait_for_termination()


def _exit_with_engine() -> None:
    """Exit when the engine's end of standard input closes, which happens even after kill -9."""
    if stat.S_ISFIFO(os.fstat(0).st_mode):
        threading.Thread(target=_exit_at_end_of_input, daemon=True).start()


def _exit_at_end_of_input() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
