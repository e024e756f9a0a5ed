"""The host key that login nodes behind a load balancer show to ssh, read through Session Manager."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from corral.cli.support.exit_codes import ExitCode, Failure

KEY_TYPE = "ssh-ed25519"
_KEY = re.compile(rf"{KEY_TYPE} [A-Za-z0-9+/]+=*")
_TIMEOUT_S = 60


def common_host_key(env: str, proxies: Mapping[str, str], host: str) -> str:
    """The key that all these login nodes show, as `known_hosts` has it after the host's name.

    `proxies`: the command that connects ssh to each, by instance. `host`: their common name. Raises Failure if none
    answers, or if they show several: one that boots has its image's key for minutes.
    """
    found = {key for instance, proxy in proxies.items() if (key := _host_key(instance, proxy, host))}
    if len(found) == 1:
        return found.pop()
    what = "shows its host key" if not found else "has the key of the others yet"
    raise Failure(
        f"no login node of {env} {what}, by which ssh knows the load balancer - try again once they have booted, or"
        " name one for Session Manager alone: --to login-1",
        ExitCode.FAILED,
    )


def _host_key(instance: str, proxy: str, host: str) -> str | None:
    """What ssh notes when it connects, whether or not that machine lets anybody in."""
    with tempfile.TemporaryDirectory() as directory:
        known = Path(directory) / "known_hosts"
        options = {
            "BatchMode": "yes",
            "GlobalKnownHostsFile": "/dev/null",
            "HashKnownHosts": "no",
            "HostKeyAlgorithms": KEY_TYPE,
            "HostKeyAlias": host,
            "PreferredAuthentications": "none",
            "ProxyCommand": proxy,
            "StrictHostKeyChecking": "accept-new",
            "UserKnownHostsFile": str(known),
        }
        words = (word for name, value in options.items() for word in ("-o", f"{name}={value}"))
        command = ["ssh", "-F", "/dev/null", *words, instance, "true"]
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S, check=False)
        except FileNotFoundError:
            raise Failure("ssh is missing - install the OpenSSH client", ExitCode.CANNOT_START) from None
        except subprocess.TimeoutExpired:
            return None
        return _key(known.read_text(encoding="ascii").splitlines() if known.exists() else (), host)


def _key(lines: Iterable[str], host: str) -> str | None:
    """The key of this host in lines of `known_hosts`."""
    for line in lines:
        name, _, key = line.partition(" ")
        if name == host and _KEY.fullmatch(key):
            return key
    return None
