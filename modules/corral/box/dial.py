"""Connect standard input and output to a port in a VPC of a box: `python -m corral.box.dial BOX VPC ADDRESS PORT`.

ssh runs it as its ProxyCommand, since this machine has no route into a box's VPC.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from ipaddress import IPv4Address
from pathlib import Path

from corral.box import control
from corral.box.daemon.daemon_process import BoxError
from corral.box.vpc.virtual_network import MachineError, Vpc

_BUFFER = 65536


def main() -> int:
    """Copy bytes until the other side ends. Returns the exit code."""
    box, vpc_id, address, port = sys.argv[1:]
    try:
        directories = set(control.machines(Path(box)).values())
        directory = next((one for one in directories if one.name == vpc_id), None)
        if directory is None:
            sys.stderr.write(f"corral: {vpc_id} has no machines in the box now\n")
            return 1
        connection = Vpc(directory=directory).connect(IPv4Address(address), int(port))
    except (BoxError, MachineError, OSError) as error:
        sys.stderr.write(f"corral: {address}:{port} cannot be reached: {error}\n")
        return 1
    threading.Thread(target=_send, args=(connection,), daemon=True).start()
    while data := connection.recv(_BUFFER):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    return 0


def _send(connection: socket.socket) -> None:
    while data := os.read(0, _BUFFER):
        connection.sendall(data)
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    sys.exit(main())
