"""The VPC's resolver: it answers from the names that the keeper was told, and says of others that they do not exist.

A resolver that does not answer makes slurmctld hang for seconds at each unknown name; this one always answers at once.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence

from dnslib import QTYPE, RCODE, RR, A, DNSError, DNSRecord

PORT = 53
_TTL_S = 1  # names move with machines
_DATAGRAM = 4096


def serve_names(address: str, names: Mapping[str, Sequence[str]]) -> None:
    """Answers at this address for ever; `names` may change meanwhile."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind((address, PORT))
    while True:
        question, caller = listener.recvfrom(_DATAGRAM)
        if reply := answer(question, names):
            listener.sendto(reply, caller)


def answer(question: bytes, names: Mapping[str, Sequence[str]]) -> bytes:
    """The reply to a question; empty for what is none. Only addresses are known, by names in small letters."""
    try:
        asked = DNSRecord.parse(question)
    except DNSError:
        return b""
    reply = asked.reply()
    name = str(asked.q.qname).rstrip(".").lower()
    found = names.get(name)
    if found is None:
        reply.header.rcode = RCODE.NXDOMAIN
    elif asked.q.qtype in (QTYPE.A, QTYPE.ANY):
        for address in found:
            reply.add_answer(RR(asked.q.qname, QTYPE.A, rdata=A(address), ttl=_TTL_S))
    return bytes(reply.pack())
