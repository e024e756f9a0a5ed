"""Conflicts between head addresses: two clusters of this project, on one base, with the same head address.

A head's address is declared, or derived from the cluster's name. `plan` assigns the address within the VPC.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address
from zlib import crc32

_KEPT = 64  # addresses at the start of a subnet that are reserved for heads; subnets start at a multiple of it
_FIRST, _COUNT = 10, 50  # within these; AWS reserves the first four and may reserve the last


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredHead:
    """A cluster's head as declared. `address`: None if derived from the cluster's name."""

    cluster: str
    base: str
    zone: str
    address: IPv4Address | None


def head_slot(cluster: str) -> int:
    """Return the index of this cluster's head address among those reserved for heads."""
    return _FIRST + crc32(cluster.encode()) % _COUNT


def find_conflict(head: DeclaredHead, others: Iterable[DeclaredHead]) -> DeclaredHead | None:
    """Return the first head with the same address in the same subnet; None if there is none."""
    return next((other for other in others if _conflict(head, other)), None)


def _conflict(one: DeclaredHead, other: DeclaredHead) -> bool:
    if (one.base, one.zone) != (other.base, other.zone) or one.cluster == other.cluster:
        return False
    if one.address and other.address:
        return one.address == other.address
    return _slot(one) == _slot(other)


def _slot(head: DeclaredHead) -> int:
    return head_slot(head.cluster) if head.address is None else int(head.address) % _KEPT
