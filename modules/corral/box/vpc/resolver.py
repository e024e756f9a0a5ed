"""The VPC's DNS resolver: it serves the given names, and NXDOMAIN for all others.

Without a reply slurmctld would hang for seconds at each unknown name.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence

from dnslib import QTYPE, RCODE, RR, A, DNSError, DNSRecord

PORT = 53
_TTL_S = 1  # names move with machines
_DATAGRAM = 4096


def serve_dns(address: str, names: Mapping[str, Sequence[str]]) -> None:
    """Serve at this address forever; `names` may change meanwhile."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind((address, PORT))
    while True:
        question, caller = listener.recvfrom(_DATAGRAM)
        if reply := reply_to(question, names):
            listener.sendto(reply, caller)


def reply_to(question: bytes, names: Mapping[str, Sequence[str]]) -> bytes:
    """The reply to a query; empty for an invalid one. Names are in lower case and have only A records."""
    try:
        request = DNSRecord.parse(question)
    except DNSError:
        return b""
    reply = request.reply()
    name = str(request.q.qname).rstrip(".").lower()
    found = names.get(name)
    if found is None:
        reply.header.rcode = RCODE.NXDOMAIN
    elif request.q.qtype in (QTYPE.A, QTYPE.ANY):
        for address in found:
            reply.add_answer(RR(request.q.qname, QTYPE.A, rdata=A(address), ttl=_TTL_S))
    return bytes(reply.pack())
