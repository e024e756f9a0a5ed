"""Only root reaches the metadata service: the rules, and the effect of their unit in a network namespace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from corral.agent.imds_firewall import IPV4, IPV6, reachable_addresses, rule
from corral.box.vpc.capabilities import probe_host

# Prints the unit with the rules for the users of this namespace.
UNIT_HERE = """from corral.agent.host.systemd_units import firewall_unit
from corral.agent.imds_firewall import IPV4, IPV6, rule
uid_map = open("/proc/self/uid_map").read()
print(firewall_unit(rule(IPV4, uid_map), rule(IPV6, uid_map)))
"""
# Systemd stops at the first command of a start that fails. Of a stop, it ignores a failure of a command with a dash.
UNIT = f"""unit=$({sys.executable} -c '{UNIT_HERE}')
start() {{ printf '%s\\n' "$unit" | sed -n 's/^ExecStart=//p' | sh -e; }}
stop() {{ printf '%s\\n' "$unit" | sed -n 's/^ExecStop=-//p' | sh; }}
"""
# A connection by IPv6 first needs an address of its own.
ADDRESS = "ip link set lo up && ip -6 address add fd00::1 dev lo nodad"
# Prints why a connection fails: 13 is "permission denied", 101 "network unreachable".
TRY = "import socket; s = socket.socket(socket.{kind}); s.settimeout(1); print(s.connect_ex(('{address}', 80)))"


def in_namespace(script: str) -> list[str]:
    """The lines that a shell script prints in namespaces of its own, where it may call `start` and `stop`."""
    assert probe_host().users, probe_host().problem
    namespaces = ("unshare", *probe_host().user_namespace_options, "--net", "--mount")
    command = [*namespaces, "sh", "-c", f"{UNIT}{script}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def priorities(rules: list[str]) -> list[str]:
    """The priorities of the printed rules."""
    return [line.split()[0] for line in rules]


def test_all_users_but_root_are_blocked() -> None:
    assert rule(IPV4) == ("priority", "100", "to", "169.254.169.254", "uidrange", "1-4294967294", "prohibit")


def test_all_users_but_root_are_blocked_from_the_ipv6_address() -> None:
    assert rule(IPV6) == ("priority", "100", "to", "fd00:ec2::254", "uidrange", "1-4294967294", "prohibit")


def test_in_a_user_namespace_its_users_are_blocked() -> None:
    arguments = rule(IPV4, "         0       1000          1\n         1     100000      65536\n")
    assert arguments == ("priority", "100", "to", "169.254.169.254", "uidrange", "1-65536", "prohibit")


def test_without_other_users_there_is_no_rule() -> None:
    assert rule(IPV4, "         0       1000          1\n") is None


def test_a_kernel_without_ipv6_reaches_one_address(tmp_path: Path) -> None:
    assert reachable_addresses(tmp_path) == (IPV4,)


@pytest.mark.box
@pytest.mark.parametrize(("kind", "address"), [("AF_INET", "169.254.169.254"), ("AF_INET6", "fd00:ec2::254")])
@pytest.mark.parametrize(("user", "error"), [(0, "101"), (1, "13"), (65534, "13")])
def test_the_kernel_knows_whose_connection_it_is(user: int, error: str, kind: str, address: str) -> None:
    """Without the rule all three would find the network unreachable."""
    attempt = TRY.format(kind=kind, address=address)
    script = f'{ADDRESS} && start && exec setpriv --reuid={user} --clear-groups /usr/bin/python3 -c "{attempt}"'
    assert in_namespace(script) == [error]


@pytest.mark.box
@pytest.mark.parametrize("family", ["-4", "-6"])
@pytest.mark.parametrize("lost", ["true", "ip {family} rule del priority 100"])
def test_a_restarted_unit_leaves_one_rule(lost: str, family: str) -> None:
    """Whether the rule is still there or was lost."""
    rules = in_namespace(f"start; {lost.format(family=family)}; stop 2>&-; start && ip {family} rule list")
    assert priorities(rules).count("100:") == 1


@pytest.mark.box
def test_without_ipv6_the_unit_starts_with_the_rule_of_ipv4() -> None:
    rules = in_namespace("mount -t tmpfs none /proc; start && ip -4 rule list && ip -6 rule list")
    assert priorities(rules).count("100:") == 1


@pytest.mark.box
@pytest.mark.parametrize("family", ["-4", "-6"])
def test_a_machine_of_the_box_that_boots_again_has_one_rule(family: str) -> None:
    restrict = "from corral.agent.host.box import BoxHost; BoxHost().restrict_metadata()"
    again = f"{sys.executable} -c '{restrict}'"
    rules = in_namespace(f"{again} && {again} && ip {family} rule list")
    assert priorities(rules).count("100:") == 1
