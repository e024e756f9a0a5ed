"""Restrict EC2's metadata service, which holds the credentials of the machine's role, to root.

A routing rule of the kernel, which knows the user of each connection, so no firewall and no package is needed. Machines
of the box have the same rule. Packets forwarded for a container with its own network have no user here; the hop limit
of 1, which every launch template sets, stops them. Launch templates also disable the service's IPv6 address; the rule
holds where somebody enables it.
Sources: ip-rule(8), `uidrange`; EC2 User Guide, "Limit access to the instance metadata service" (there with iptables)
and "Access instance metadata for an EC2 instance" (both addresses).
"""

from dataclasses import dataclass
from pathlib import Path

INTERFACES_IPV6 = "/proc/net/if_inet6"  # missing if the kernel has no IPv6; then `ip -6` fails
PRIORITY = 100  # before the kernel's own look-ups in `main` (32766); after `local` (0)
ALL_USERS = "0 0 4294967295"  # the map outside any user namespace; the highest id is one less, because -1 means none


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataAddress:
    """An address of the metadata service, and the option of `ip` for its family."""

    family: str
    address: str

    @property
    def list_command(self) -> tuple[str, ...]:
        """The command that prints the rule, or nothing if it is lost."""
        return ("ip", self.family, "rule", "list", "priority", str(PRIORITY))


IPV4 = MetadataAddress(family="-4", address="169.254.169.254")
IPV6 = MetadataAddress(family="-6", address="fd00:ec2::254")


def reachable_addresses(root: Path = Path("/")) -> tuple[MetadataAddress, ...]:
    """The addresses that the kernel of this root can reach: without IPv6 only one."""
    return (IPV4, IPV6) if (root / INTERFACES_IPV6.lstrip("/")).exists() else (IPV4,)


def rule(service: MetadataAddress, uid_map: str = ALL_USERS) -> tuple[str, ...] | None:
    """Return the arguments of `ip rule add`, by /proc/self/uid_map; None if root is the only user.

    A rule cannot name users that the user namespace lacks.
    """
    last = max(first + count - 1 for first, _, count in (map(int, line.split()) for line in uid_map.splitlines()))
    if last < 1:
        return None
    return ("priority", str(PRIORITY), "to", service.address, "uidrange", f"1-{last}", "prohibit")
