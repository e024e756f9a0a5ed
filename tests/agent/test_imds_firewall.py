"""Only root reaches the metadata service: the rule, and its effect in a network namespace."""

from __future__ import annotations

import subprocess
import sys

import pytest

from corral.agent.host.systemd_units import firewall_unit
from corral.agent.imds_firewall import SERVICE, rule
from corral.box.vpc.capabilities import probe_host

RULE_HERE = 'from corral.agent.imds_firewall import rule; print(*rule(open("/proc/self/uid_map").read()))'
# Prints why a connection fails: 13 is "permission denied", 101 "network unreachable".
TRY = "import socket; s = socket.socket(); s.settimeout(1); print(s.connect_ex(('169.254.169.254', 80)))"


def test_all_users_but_root_are_blocked() -> None:
    assert rule() == ("priority", "100", "to", "169.254.169.254", "uidrange", "1-4294967294", "prohibit")


def test_in_a_user_namespace_its_users_are_blocked() -> None:
    arguments = rule("         0       1000          1\n         1     100000      65536\n")
    assert arguments == ("priority", "100", "to", SERVICE, "uidrange", "1-65536", "prohibit")


def test_without_other_users_there_is_no_rule() -> None:
    assert rule("         0       1000          1\n") is None


@pytest.mark.box
@pytest.mark.parametrize(("user", "error"), [(0, 101), (1, 13), (65534, 13)])
def test_the_kernel_knows_whose_connection_it_is(user: int, error: int) -> None:
    """Without the rule all three would find the network unreachable."""
    assert probe_host().users, probe_host().problem
    arguments = f"$({sys.executable} -c '{RULE_HERE}')"
    script = f'ip rule add {arguments} && exec setpriv --reuid={user} --clear-groups /usr/bin/python3 -c "{TRY}"'
    namespaces = ("unshare", *probe_host().user_namespace_options, "--net")
    done = subprocess.run([*namespaces, "sh", "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) == error


@pytest.mark.box
@pytest.mark.parametrize("lost", ["true", "ip rule del priority 100"])
def test_a_restarted_unit_leaves_one_rule(lost: str) -> None:
    """Whether the rule is still there or was lost: of a stop, systemd ignores a failure of a command with a dash."""
    assert probe_host().users, probe_host().problem
    commands = dict(
        line.split("=", 1) for line in firewall_unit(("$RULE",)).replace("'", "").splitlines() if "=" in line
    )
    start, stop = commands["ExecStart"], commands["ExecStop"]
    assert stop.startswith("-")
    script = f"RULE=$({sys.executable} -c '{RULE_HERE}'); {start}; {lost}; {stop[1:]} 2>&-; {start} && ip rule list"
    namespaces = ("unshare", *probe_host().user_namespace_options, "--net")
    done = subprocess.run([*namespaces, "sh", "-c", script], capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["0:", "100:", "32766:", "32767:"]
