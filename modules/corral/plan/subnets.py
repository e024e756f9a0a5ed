"""The subnets of the VPC, independent of the order and number of zones in use.

The VPC is divided into eight equal blocks. A zone's number selects its block (use1-az3 gets the third), so adding or
removing a zone never moves another zone's subnet. The eighth block holds the public subnet.
"""

import re
from collections.abc import Sequence
from ipaddress import IPv4Network

from corral.model.base import PublicPlan, ZonePlan

_BLOCKS_PREFIX = 3  # 2**3 blocks: regions have at most six ordinary zones today, one spare, one for public subnets
_HEADS_PREFIX = 26  # 64 addresses a zone that AWS does not assign automatically, for heads with a fixed address
_PUBLIC_PREFIX = 26  # holds only the NAT gateway


def plan_zones(cidr: IPv4Network, zone_ids: Sequence[str]) -> tuple[ZonePlan, ...]:
    """Plan the private subnet of each zone, in the order given."""
    blocks = tuple(cidr.subnets(prefixlen_diff=_BLOCKS_PREFIX))
    return tuple(_zone(zone_id, blocks[_zone_number(zone_id) - 1]) for zone_id in zone_ids)


def plan_public(cidr: IPv4Network, zone_id: str) -> PublicPlan:
    """Plan the public subnet: the first 64 addresses of the VPC's last block."""
    last = tuple(cidr.subnets(prefixlen_diff=_BLOCKS_PREFIX))[-1]
    return PublicPlan(zone_id=zone_id, cidr=next(last.subnets(new_prefix=_PUBLIC_PREFIX)))


def _zone(zone_id: str, block: IPv4Network) -> ZonePlan:
    return ZonePlan(zone_id=zone_id, private=block, heads=next(block.subnets(new_prefix=_HEADS_PREFIX)))


def _zone_number(zone_id: str) -> int:
    """Return the number in a zone's id, or of the letter in its name: us-east-1c is the third of its account."""
    if match := re.fullmatch(r"[a-z0-9]+-az([1-7])", zone_id):
        return int(match[1])
    if match := re.fullmatch(r"[a-z]{2}(?:-[a-z]+)+-\d+([a-g])", zone_id):
        return "abcdefg".index(match[1]) + 1
    raise ValueError(f"{zone_id!r} is not an ordinary zone")
