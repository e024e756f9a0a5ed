"""The network load balancers of a VPC: each address of one accepts TCP connections and passes them on to a target.

A target that does not answer is skipped, as one that fails its health checks is. Targets see the address of the load
balancer; those of AWS can see the client's.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Mapping, Sequence

from corral.box.vpc.bridge import add_address, remove_address
from corral.box.vpc.relay import splice
from corral.box.vpc.vpc_state import VpcState

_CONNECT_IN_S = 2.0  # a lost machine does not answer at all

Targets = Sequence[str]


class Listeners:
    """The listeners of a VPC's load balancers, by address and port as text: 10.64.224.10:22."""

    def __init__(self, vpc: VpcState) -> None:
        self._vpc = vpc
        self._targets: dict[str, Targets] = {}
        self._sockets: dict[str, socket.socket] = {}
        self._lock = threading.Lock()

    def replace(self, wanted: Mapping[str, Targets]) -> None:
        """Accept connections for these listeners alone. Targets are addresses with ports, in the order of trial."""
        with self._lock:
            self._targets = dict(wanted)
            for name in self._sockets.keys() - wanted.keys():
                self._close(name)
            for name in wanted.keys() - self._sockets.keys():
                address, port = _parts(name)
                add_address(self._vpc, address)
                self._sockets[name] = socket.create_server((address, port), backlog=512)
                threading.Thread(target=self._accept, args=(name, self._sockets[name]), daemon=True).start()

    def _close(self, name: str) -> None:
        """Close a listener; its address is free unless another one has it. A thread that waits in accept ends."""
        with contextlib.suppress(OSError):
            self._sockets[name].shutdown(socket.SHUT_RDWR)
        self._sockets.pop(name).close()
        address, _ = _parts(name)
        if not any(_parts(other)[0] == address for other in self._sockets):
            remove_address(self._vpc, address)

    def _accept(self, name: str, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                caller, _ = listener.accept()
                threading.Thread(target=self._forward, args=(name, caller), daemon=True).start()

    def _forward(self, name: str, caller: socket.socket) -> None:
        source, _ = _parts(name)
        for target in self._targets.get(name, ()):
            with contextlib.suppress(OSError):
                reached = socket.create_connection(_parts(target), timeout=_CONNECT_IN_S, source_address=(source, 0))
                reached.settimeout(None)
                splice(caller, reached)
                return
        caller.close()


def _parts(name: str) -> tuple[str, int]:
    address, _, port = name.rpartition(":")
    return address, int(port)
