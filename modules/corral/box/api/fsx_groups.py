"""The security groups of a new Lustre file system: its servers must reach each other through them.

Source: FSx for Lustre user guide, "File system access control with Amazon VPC" and "Creating an FSx for Lustre file
system fails".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

from corral.box.api_errors import ApiError

ALL = "-1"
PORTS = (988, *range(1018, 1024))
CLOSED = (
    "The file system cannot be created because the default security group in the subnet provided or the provided"
    " security groups do not permit Lustre LNET network traffic on port {port}"
)
CLOSED_TO_EFA = (
    "Insufficient security group permissions to create an EFA-enabled file system. Update security group to allow all"
    " internal inbound and outbound traffic."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRule:
    """A rule of a security group. `peer`: a group's id or an IPv4 range. `first`, `last`: ports, unused for `-1`."""

    outbound: bool
    protocol: str
    peer: str | IPv4Network
    first: int = 0
    last: int = 0


def check_group_rules(rules: Sequence[GroupRule], groups: Collection[str], subnet: IPv4Network, *, efa: bool) -> None:
    """Raises ApiError unless the rules of these groups let the servers in this subnet reach each other."""
    for outbound in (False, True):
        open_rules = [rule for rule in rules if rule.outbound == outbound and _is_internal(rule, groups, subnet)]
        if efa and not any(rule.protocol == ALL and isinstance(rule.peer, str) for rule in open_rules):
            raise ApiError("InvalidNetworkSettings", CLOSED_TO_EFA)
        for port in PORTS:
            if not any(_opens(rule, port) for rule in open_rules):
                raise ApiError("InvalidNetworkSettings", CLOSED.format(port=port))


def _is_internal(rule: GroupRule, groups: Collection[str], subnet: IPv4Network) -> bool:
    """True if the rule's peer is one of the groups, or a range that contains the subnet."""
    return rule.peer in groups if isinstance(rule.peer, str) else subnet.subnet_of(rule.peer)


def _opens(rule: GroupRule, port: int) -> bool:
    return rule.protocol == ALL or (rule.protocol == "tcp" and rule.first <= port <= rule.last)
