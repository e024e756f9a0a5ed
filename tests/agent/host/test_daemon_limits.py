"""What systemd takes from the agent's own daemons, by its own count: `systemd-analyze security`. None runs here."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from corral.agent.config.slurm_validation import NAMESPACES
from corral.agent.host.base import Daemon, autoscaler, credentials, login_watcher, watcher
from corral.agent.host.systemd_units import daemon_unit

pytestmark = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing: apt install systemd"
)
# The exposure that each may have, in tenths; without limits it is 96. With systemd 252: 25, 76, 79, 79.
DAEMONS = ((credentials(), 30), (watcher(), 80), (autoscaler(), 80), (login_watcher(), 80))
NAMES = ("credentials", "watcher", "autoscaler", "login watcher")


def analyzed(command: Sequence[str], daemon: Daemon, directory: Path) -> subprocess.CompletedProcess[str]:
    """What systemd-analyze says of the daemon's unit. Its agent is a program that exists."""
    unit = directory / f"{daemon.unit}.service"
    unit.write_text(daemon_unit(replace(daemon, command=("/bin/true",))))
    return subprocess.run(
        ["systemd-analyze", *command, str(unit)], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize(("daemon", "most"), DAEMONS, ids=NAMES)
def test_a_daemon_is_less_exposed_than_without_its_limits(daemon: Daemon, most: int, tmp_path: Path) -> None:
    security = ("security", "--offline=true", "--no-pager", f"--threshold={most}")
    free = replace(daemon, limits=())
    assert [analyzed(security, one, tmp_path).returncode for one in (daemon, free)] == [0, 1]


def test_the_autoscaler_may_validate_a_configuration_in_namespaces() -> None:
    """It refused each later `corral up` on a virtual machine: "unshare failed: Operation not permitted"."""
    limits = dict(limit.split("=") for limit in autoscaler().limits)
    created = {option.removeprefix("--").replace("mount", "mnt") for option in NAMESPACES[1:5]}
    assert (set(limits["RestrictNamespaces"].split()), "ProtectHostname" in limits) == (created, False)


@pytest.mark.parametrize("daemon", [one for one, _ in DAEMONS], ids=NAMES)
def test_systemd_knows_each_limit(daemon: Daemon, tmp_path: Path) -> None:
    assert analyzed(("verify", "--man=no"), daemon, tmp_path).stderr == ""
