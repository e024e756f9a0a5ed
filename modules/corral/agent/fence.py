"""Who reaches EC2's metadata service, which has the credentials of the machine's role: root, and nobody else.

A rule of the kernel's routing, which knows the user of each connection, so no firewall and no package is needed, and
machines of the box have the same one. What is passed on for a container with a network of its own is not a user's here;
that ends at the hop limit of 1 that every launch template sets.
Sources: ip-rule(8), `uidrange`; EC2 User Guide, "Limit access to the instance metadata service" (there with iptables).
"""

SERVICE = "169.254.169.254"
PRIORITY = 100  # before the kernel's own look-ups in `main` (32766); after `local` (0)
ALL_USERS = (
    "0 0 4294967295"  # the map of a machine that is no user namespace; the highest id is one less, for -1 is none
)


def rule(uid_map: str = ALL_USERS) -> tuple[str, ...] | None:
    """What follows `ip rule add`, by /proc/self/uid_map; None where root is the only user that there is.

    Users that a user namespace does not have cannot be named in it.
    """
    last = max(first + count - 1 for first, _, count in (map(int, line.split()) for line in uid_map.splitlines()))
    if last < 1:
        return None
    return ("priority", str(PRIORITY), "to", SERVICE, "uidrange", f"1-{last}", "prohibit")
