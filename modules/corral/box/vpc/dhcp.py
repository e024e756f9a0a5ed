"""The VPC's DHCP server: it leases each machine the address that its MAC address has, and is silent to all others.

`reply_to` is pure; `serve_dhcp` receives and sends. The options are those of a lease on EC2: mask, router, resolver,
domain and host name, MTU and broadcast address. EC2 sends no classless static routes.
Source: RFC 2131 and 2132; lease files of dhclient on EC2.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv4Address, IPv4Interface

_SERVER_PORT, _CLIENT_PORT = 67, 68
_DATAGRAM = 4096
_REQUEST, _REPLY = 1, 2
_ETHERNET = (1, 6)  # the type and the length of MAC addresses
_COOKIE = b"\x63\x82\x53\x63"
# op, htype, hlen, hops, xid, secs, flags, ciaddr, yiaddr, siaddr, giaddr, chaddr; sname and file stay empty; cookie.
# Source: RFC 2131, section 2.
_HEADER = struct.Struct("!4B4s2s2s4s4s4s4s16s192x4s")
_NO_ADDRESS = bytes(4)
_SHORTEST = 300  # bytes of a BOOTP message, which some clients expect. Source: RFC 1542, section 2.1
_PAD, _END = 0, 255


class _MessageType(IntEnum):
    """RFC 2132, section 9.6."""

    DISCOVER = 1
    OFFER = 2
    REQUEST = 3
    ACK = 5
    NAK = 6
    INFORM = 8


class _Option(IntEnum):
    """RFC 2132."""

    SUBNET_MASK = 1
    ROUTER = 3
    RESOLVER = 6
    HOST_NAME = 12
    DOMAIN_NAME = 15
    MTU = 26
    BROADCAST_ADDRESS = 28
    REQUESTED_ADDRESS = 50
    LEASE_TIME = 51
    MESSAGE_TYPE = 53
    SERVER = 54
    RENEWAL_TIME = 58
    REBINDING_TIME = 59
    CLIENT = 61


_Options = Mapping[int, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The address of a machine with its subnet, and its host name without the domain."""

    address: IPv4Interface
    host_name: str

    @property
    def router(self) -> IPv4Address:
        """The subnet's router, which is also its DHCP server. Source: VPC User Guide, "Subnet sizing for IPv4"."""
        return self.address.network[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class DhcpSettings:
    """What all machines get. `mtu` None sends none."""

    resolver: IPv4Address
    domain_name: str
    lease_s: int = 3600  # as on EC2
    mtu: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    kind: int
    xid: bytes
    flags: bytes
    address: bytes  # ciaddr: that of a client that already uses it, or zeros
    hardware: bytes
    options: _Options

    @property
    def mac(self) -> str:
        return self.hardware[:6].hex(":")


def serve_dhcp(interface: str, settings: DhcpSettings, leases: Mapping[str, Lease]) -> None:
    """Serve on this interface forever; `leases`, by MAC address, may change meanwhile."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
    listener.bind(("", _SERVER_PORT))
    while True:
        request = listener.recv(_DATAGRAM)
        if reply := reply_to(request, leases, settings):
            with contextlib.suppress(OSError):  # the client repeats its request
                listener.sendto(reply, (receiver_of(reply), _CLIENT_PORT))


def receiver_of(reply: bytes) -> str:
    """The address to send a reply to: that of a client that already uses it, otherwise the broadcast address.

    RFC 2131, section 4.1, lets a server broadcast to a client that has no address yet and does not answer ARP.
    """
    client = reply[12:16]
    return str(IPv4Address(client)) if client != _NO_ADDRESS else "255.255.255.255"


def reply_to(request: bytes, leases: Mapping[str, Lease], settings: DhcpSettings) -> bytes:
    """The reply to a message; empty for an invalid one, an unknown MAC address, or one that needs no reply.

    `leases` has MAC addresses in lower case with colons. The server keeps no state: a released or declined address
    stays that of its machine.
    """
    parsed = _parse(request)
    lease = leases.get(parsed.mac) if parsed else None
    if parsed is None or lease is None:
        return b""
    named = parsed.options.get(_Option.SERVER)
    if named not in (None, lease.router.packed):
        return b""  # the client chose another server
    match parsed.kind:
        case _MessageType.DISCOVER:
            return _lease(parsed, _MessageType.OFFER, lease, settings)
        case _MessageType.REQUEST if _requested(parsed) == lease.address.ip.packed:
            return _lease(parsed, _MessageType.ACK, lease, settings)
        case _MessageType.REQUEST:
            return _reply(parsed, _MessageType.NAK, lease, _NO_ADDRESS, {})
        case _MessageType.INFORM if parsed.address == lease.address.ip.packed:
            return _reply(parsed, _MessageType.ACK, lease, _NO_ADDRESS, _configuration(lease, settings))
    return b""


def _requested(request: _Request) -> bytes:
    """The address that the client wants to use, or already does when it renews. RFC 2131, section 4.3.2."""
    return request.options.get(_Option.REQUESTED_ADDRESS, request.address)


def _lease(request: _Request, kind: _MessageType, lease: Lease, settings: DhcpSettings) -> bytes:
    times: Mapping[int, int] = {
        _Option.LEASE_TIME: settings.lease_s,
        # EC2 sends neither of them; without, clients use the same. Source: RFC 2131, section 4.4.5.
        _Option.RENEWAL_TIME: settings.lease_s // 2,
        _Option.REBINDING_TIME: settings.lease_s * 7 // 8,
    }
    options = {option: struct.pack("!I", seconds) for option, seconds in times.items()}
    return _reply(request, kind, lease, lease.address.ip.packed, {**options, **_configuration(lease, settings)})


def _configuration(lease: Lease, settings: DhcpSettings) -> _Options:
    mtu: _Options = {} if settings.mtu is None else {_Option.MTU: struct.pack("!H", settings.mtu)}
    return {
        _Option.SUBNET_MASK: lease.address.netmask.packed,
        _Option.ROUTER: lease.router.packed,
        _Option.RESOLVER: settings.resolver.packed,
        _Option.HOST_NAME: lease.host_name.encode(),
        _Option.DOMAIN_NAME: settings.domain_name.encode(),
        _Option.BROADCAST_ADDRESS: lease.address.network.broadcast_address.packed,
        **mtu,
    }


def _parse(message: bytes) -> _Request | None:
    """A client's message; None for another or an invalid one, and for one from a relay, of which the VPC has none."""
    if len(message) < _HEADER.size:
        return None
    op, *hardware_type, _, xid, _, flags, address, _, _, relay, hardware, cookie = _HEADER.unpack_from(message)
    options = _options(message[_HEADER.size :])
    if (op, tuple(hardware_type), relay, cookie) != (_REQUEST, _ETHERNET, _NO_ADDRESS, _COOKIE) or options is None:
        return None
    kind = options.get(_Option.MESSAGE_TYPE, b"")
    if len(kind) != 1:
        return None
    return _Request(kind=kind[0], xid=xid, flags=flags, address=address, hardware=hardware, options=options)


def _options(field: bytes) -> _Options | None:
    """The values by option; None if one is cut off."""
    found: dict[int, bytes] = {}
    at = 0
    while at < len(field) and field[at] != _END:
        if field[at] == _PAD:
            at += 1
            continue
        length = field[at + 1 : at + 2]
        value = field[at + 2 : at + 2 + sum(length)]
        if not length or len(value) < length[0]:
            return None
        found[field[at]] = value
        at += 2 + len(value)
    return found


def _reply(request: _Request, kind: _MessageType, lease: Lease, given: bytes, options: _Options) -> bytes:
    client = request.address if kind is _MessageType.ACK else _NO_ADDRESS  # RFC 2131, table 3
    header = _HEADER.pack(
        _REPLY, *_ETHERNET, 0, request.xid, bytes(2), request.flags, client, given, _NO_ADDRESS, _NO_ADDRESS,
        request.hardware, _COOKIE,
    )  # fmt: skip
    identifier = {code: value for code, value in request.options.items() if code == _Option.CLIENT}  # RFC 6842
    all_options: _Options = {
        _Option.MESSAGE_TYPE: bytes((kind,)),
        _Option.SERVER: lease.router.packed,
        **options,
        **identifier,
    }
    body = b"".join(bytes((code, len(value))) + value for code, value in all_options.items())
    return (header + body + bytes((_END,))).ljust(_SHORTEST, b"\0")
