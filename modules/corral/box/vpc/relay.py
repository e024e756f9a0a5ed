"""Relay connections: from a machine to the daemon, and from the daemon to a machine."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path

from corral.box.vpc.vpc_state import DAEMON_SOCKET

HTTP = 80
PACKAGES = 3142  # of the package mirror, in VPCs of virtual machines. Source: apt-cacher-ng's default
_BUFFER = 65536


def connect_to_machine(caller: socket.socket, address: str, port: int) -> None:
    """Connect the caller to a port of a machine: after a line `{}`, bytes flow both ways."""
    machine = socket.create_connection((address, port), timeout=5)
    machine.settimeout(None)
    caller.sendall(b"{}\n")
    splice(caller, machine)


def relay_to_daemon(
    directory: Path, caller: socket.socket, peer: tuple[str, int], called: str, name: str = DAEMON_SOCKET
) -> None:
    """Relay a machine's connection to a socket of the daemon, after a line with the caller's and the called address."""
    daemon = socket.socket(socket.AF_UNIX)
    try:
        daemon.connect(str(directory / name))
        # The PROXY protocol, version 1. Source: HAProxy's proxy-protocol.txt, section 2.1.
        daemon.sendall(f"PROXY TCP4 {peer[0]} {called} {peer[1]} {HTTP}\r\n".encode())
    except OSError:
        caller.close()
        daemon.close()
        return
    splice(caller, daemon)


def read_proxy_line(line: bytes) -> tuple[str, str]:
    """The caller's and the called address in the line of `relay_to_daemon`. Raises ConnectionError."""
    words = line.decode("ascii", "replace").split()
    if len(words) != 6 or words[:2] != ["PROXY", "TCP4"]:
        raise ConnectionError(f"{line!r} is not a PROXY line")
    return words[2], words[3]


def splice(one: socket.socket, other: socket.socket) -> None:
    """Copy bytes both ways until both sides have ended, and close both."""
    back = threading.Thread(target=_copy, args=(other, one), daemon=True)
    back.start()
    _copy(one, other)
    back.join()
    one.close()
    other.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_BUFFER):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
