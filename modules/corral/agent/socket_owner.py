"""The user at the other end of a connection on this machine, from the kernel's socket diagnostics (or /proc/net/tcp).

One socket is looked up by both its addresses and ports: any user may connect from any address of 127.0.0.0/8, and a
look through all sockets takes the longer the more of them somebody opens. A socket that no process has any more counts
for nobody's: the kernel prints it as root's. Source: sock_diag(7), linux/inet_diag.h; the kernel's proc_net_tcp.
"""

import contextlib
import socket
import struct
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_HEADER = struct.Struct("=IHHII")  # of a message of netlink: length, type, flags, sequence, port
_REQUEST = struct.Struct("=BBBxI2s2s16s16sIII")  # inet_diag_req_v2
_ANSWER = struct.Struct("=BBBB2s2s16s16sIIIIIIII")  # inet_diag_msg
_NO_COOKIE = 0xFFFFFFFF
_MAPPED = bytes(10) + b"\xff\xff"  # an IPv4 address in an IPv6 socket, which programs such as Java use
_ALL_STATES = 0xFFFFFFFF
_ESTABLISHED, _CLOSE_WAIT = 1, 8  # linux/tcp_states.h


@dataclass(frozen=True, slots=True)
class Socket:
    """One end of a connection: its own address and port, and those of the other end."""

    address: str
    port: int
    peer: str
    peer_port: int


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a socket is. `inode`: 0 if no process has it any more, and then `user` is not its user."""

    user: int
    inode: int


class SocketOwners:
    """Finds the users of connections. Without the kernel's module for it (`inet_diag`), reads the tables of sockets."""

    def __init__(self, listener: socket.socket) -> None:
        address, port = listener.getsockname()
        # The kernel answers ENOENT both for a socket and for a module that it does not have, so look a known one up.
        itself = Socket(address, port, "0.0.0.0", 0)  # noqa: S104 - the peer of a socket that listens
        self.has_lookup = looked_up(itself) is not None

    def user_of(self, connection: socket.socket) -> int | None:
        """The user who holds the other end of this accepted connection; None if nobody on this machine does."""
        with contextlib.suppress(OSError):
            client = Socket(*connection.getpeername(), *connection.getsockname())
            owner = looked_up(client) if self.has_lookup else owner_in(tcp_tables(), client)
            # If it ended before, its two ports may be those of another connection by now.
            if owner and owner.inode and _state(connection) in (_ESTABLISHED, _CLOSE_WAIT):
                return owner.user
        return None


def tcp_tables() -> str:
    """The kernel's tables of TCP sockets: a line for each, with its state and its user."""
    return "".join(table.read_text(encoding="ascii") for table in _TABLES)


def owner_in(tables: str, wanted: Socket) -> Owner | None:
    """The owner of this socket by /proc/net/tcp and tcp6; None if it is not there."""
    ends = _end(wanted.address, wanted.port), _end(wanted.peer, wanted.peer_port)
    mapped = tuple(f"{'0' * 16}FFFF0000{end}" for end in ends)
    for line in tables.splitlines():
        fields = line.split()
        if tuple(fields[1:3]) in (ends, mapped):
            return Owner(user=int(fields[7]), inode=int(fields[9]))
    return None


def _end(address: str, port: int) -> str:
    return f"{int.from_bytes(IPv4Address(address).packed, 'little'):08X}:{port:04X}"


def request_for(wanted: Socket) -> bytes:
    """The message that looks one socket up."""
    addresses = (IPv4Address(text).packed.ljust(16, b"\0") for text in (wanted.address, wanted.peer))
    ports = (port.to_bytes(2, "big") for port in (wanted.port, wanted.peer_port))
    body = _REQUEST.pack(
        socket.AF_INET, socket.IPPROTO_TCP, 0, _ALL_STATES, *ports, *addresses, 0, _NO_COOKIE, _NO_COOKIE
    )
    return _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 0, 0) + body


def owner_from(answer: bytes, wanted: Socket) -> Owner | None:
    """The owner that this answer names; None for an error, or another socket, such as one that listens."""
    if len(answer) < _HEADER.size + _ANSWER.size or _HEADER.unpack_from(answer)[1] != _SOCK_DIAG_BY_FAMILY:
        return None
    found = _ANSWER.unpack_from(answer, _HEADER.size)
    ports, addresses = found[4:6], tuple(_ipv4(found[0], packed) for packed in found[6:8])
    named = (addresses[0], int.from_bytes(ports[0], "big"), addresses[1], int.from_bytes(ports[1], "big"))
    if named != (wanted.address, wanted.port, wanted.peer, wanted.peer_port):
        return None
    return Owner(user=found[14], inode=found[15])


def _ipv4(family: int, packed: bytes) -> str:
    if family == socket.AF_INET6:
        return str(IPv4Address(packed[12:])) if packed.startswith(_MAPPED) else ""
    return str(IPv4Address(packed[:4]))


def looked_up(wanted: Socket) -> Owner | None:
    """The owner of this socket by the kernel's lookup; None if it has none such, or no lookup."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(1)
        kernel.send(request_for(wanted))  # one socket: the kernel has the answer when this returns
        return owner_from(kernel.recv(4096), wanted)
    return None


def _state(connection: socket.socket) -> int:
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
