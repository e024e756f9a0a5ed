"""The metadata service is root's: the rule, and what it does in a network of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from corral.agent.fence import SERVICE, rule
from corral.box.vpc.probe import probe

RULE_HERE = 'from corral.agent.fence import rule; print(*rule(open("/proc/self/uid_map").read()))'
# Prints why a connection fails: 13 is "permission denied", 101 "network unreachable".
TRY = "import socket; s = socket.socket(); s.settimeout(1); print(s.connect_ex(('169.254.169.254', 80)))"


def test_everybody_but_root_is_kept_out() -> None:
    assert rule() == ("priority", "100", "to", "169.254.169.254", "uidrange", "1-4294967294", "prohibit")


def test_in_a_user_namespace_those_are_kept_out_that_it_has() -> None:
    told = rule("         0       1000          1\n         1     100000      65536\n")
    assert told == ("priority", "100", "to", SERVICE, "uidrange", "1-65536", "prohibit")


def test_where_root_is_alone_there_is_nobody_to_keep_out() -> None:
    assert rule("         0       1000          1\n") is None


@pytest.mark.box
@pytest.mark.parametrize(("user", "error"), [(0, 101), (1, 13), (65534, 13)])
def test_the_kernel_knows_whose_connection_it_is(user: int, error: int) -> None:
    """Without the rule all three would find the network unreachable."""
    assert probe().users, probe().problem
    told = f"$({sys.executable} -c '{RULE_HERE}')"
    script = f'ip rule add {told} && exec setpriv --reuid={user} --clear-groups /usr/bin/python3 -c "{TRY}"'
    namespaces = ("unshare", *probe().own_user, "--net")
    done = subprocess.run([*namespaces, "sh", "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) == error
