"""The host key of login nodes, read from a real sshd by a real ssh, and the entry that accepts this one alone."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from corral.cli.support.exit_codes import ExitCode, Failure
from corral.cli.support.host_keys import common_host_key
from corral.render.access import balancer_entry

SILENT = "sleep 0"  # a way on which nobody answers
REFUSED = "Host key verification failed."
Sshd = Callable[[str], str]


@pytest.fixture
def sshd(tmp_path: Path) -> Sshd:
    """Makes the command that connects ssh to an sshd with a new key of this name."""

    def make(name: str) -> str:
        if not (tmp_path / name).exists():
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
        return f"/usr/sbin/sshd -i -f /dev/null -h {tmp_path / name}"

    return make


def public(tmp_path: Path, name: str) -> str:
    return " ".join((tmp_path / f"{name}.pub").read_text().split()[:2])


def test_the_key_of_all_login_nodes_is_read_from_those_that_answer(sshd: Sshd, tmp_path: Path) -> None:
    proxies = {"i-1": sshd("shared"), "i-2": SILENT, "i-3": sshd("shared")}
    assert common_host_key("dev", proxies, "dev-login") == public(tmp_path, "shared")


@pytest.mark.parametrize(
    ("nodes", "what"), [(("one", "another"), "has the key of the others yet"), ((), "shows its host key")]
)
def test_no_key_is_printed_that_login_nodes_do_not_agree_on(sshd: Sshd, nodes: tuple[str, ...], what: str) -> None:
    proxies = {"i-0": SILENT, **{f"i-{name}": sshd(name) for name in nodes}}
    with pytest.raises(Failure, match=f"^no login node of dev {what}, ") as failure:
        common_host_key("dev", proxies, "dev-login")
    assert failure.value.code is ExitCode.FAILED


@pytest.mark.parametrize(("name", "is_refused"), [("shared", False), ("another", True)])
def test_the_entry_of_a_load_balancer_accepts_one_host_key(
    sshd: Sshd, tmp_path: Path, name: str, is_refused: bool
) -> None:
    sshd("shared")
    entry = tmp_path / "entry"
    entry.write_text(balancer_entry("dev-login", "203.0.113.9", "ada", public(tmp_path, "shared"), sshd(name)))
    unknown = ("-o", "UserKnownHostsFile=/dev/null", "-o", "GlobalKnownHostsFile=/dev/null", "-o", "BatchMode=yes")
    done = subprocess.run(["ssh", "-F", entry, *unknown, "dev-login", "true"], capture_output=True, text=True)
    assert (REFUSED in done.stderr, "Permission denied" in done.stderr) == (is_refused, not is_refused)


def test_an_entry_without_a_person_takes_the_name_of_whoever_calls_it() -> None:
    entry = balancer_entry("dev-login", "corral-1.elb.us-east-1.amazonaws.com", None, "ssh-ed25519 AAAA")
    assert entry.splitlines() == [
        "Host dev-login",
        "    HostName corral-1.elb.us-east-1.amazonaws.com",
        "    HostKeyAlias dev-login",
        "    HostKeyAlgorithms ssh-ed25519",
        "    KnownHostsCommand /bin/echo dev-login ssh-ed25519 AAAA",
        "    StrictHostKeyChecking yes",
        "    ServerAliveInterval 60",
    ]
