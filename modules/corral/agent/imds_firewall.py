"""Restrict EC2's metadata service, which holds the credentials of the machine's role, to root.

A routing rule of the kernel, which knows the user of each connection, so no firewall and no package is needed. Machines
of the box have the same rule. Packets forwarded for a container with its own network have no user here; the hop limit
of 1, which every launch template sets, stops them.
Sources: ip-rule(8), `uidrange`; EC2 User Guide, "Limit access to the instance metadata service" (there with iptables).
"""

SERVICE = "169.254.169.254"
PRIORITY = 100  # before the kernel's own look-ups in `main` (32766); after `local` (0)
ALL_USERS = "0 0 4294967295"  # the map outside any user namespace; the highest id is one less, because -1 means none


def rule(uid_map: str = ALL_USERS) -> tuple[str, ...] | None:
    """Return the arguments of `ip rule add`, by /proc/self/uid_map; None if root is the only user.

    A rule cannot name users that the user namespace lacks.
    """
    last = max(first + count - 1 for first, _, count in (map(int, line.split()) for line in uid_map.splitlines()))
    if last < 1:
        return None
    return ("priority", str(PRIORITY), "to", SERVICE, "uidrange", f"1-{last}", "prohibit")
