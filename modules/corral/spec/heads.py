"""Heads that would meet on one address: two clusters of one base, each declared in a file of this project.

A head's address is declared or follows from its cluster's name. Where such addresses lie in a VPC is planned elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address
from zlib import crc32

_KEPT = 64  # addresses at the beginning of a subnet that are kept for heads; subnets begin at a multiple of it
_FIRST, _COUNT = 10, 50  # of them; AWS itself takes the first four and may take the last


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadPlace:
    """Where a cluster's head is to be. `address`: None where it follows from the name."""

    cluster: str
    base: str
    zone: str
    address: IPv4Address | None


def head_slot(cluster: str) -> int:
    """Which of the addresses kept for heads is this cluster's, if it declares none."""
    return _FIRST + crc32(cluster.encode()) % _COUNT


def meeting(place: HeadPlace, others: Iterable[HeadPlace]) -> HeadPlace | None:
    """The first of the others whose head would have the same address in the same subnet; None where there is none."""
    return next((other for other in others if _meet(place, other)), None)


def _meet(one: HeadPlace, other: HeadPlace) -> bool:
    if (one.base, one.zone) != (other.base, other.zone) or one.cluster == other.cluster:
        return False
    if one.address and other.address:
        return one.address == other.address
    return _slot(one) == _slot(other)


def _slot(place: HeadPlace) -> int:
    return head_slot(place.cluster) if place.address is None else int(place.address) % _KEPT
