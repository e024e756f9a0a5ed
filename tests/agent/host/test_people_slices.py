"""The limits of people on a login node, as systemd understands them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from corral.agent.host.ec2 import Ec2Host
from corral.agent.host.lustre_client import MachineSize

pytestmark = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing: apt install systemd"
)


def written(root: Path, vcpus: int) -> list[str]:
    """What a login node of this size runs after it has written its slices; they are in `root`."""
    ran: list[str] = []
    host = Ec2Host(
        lambda command: ran.append(" ".join(command)) or "",
        "us-east-1",
        root,
        size=MachineSize(vcpus=vcpus, memory_mib=8192),
    )
    host.limit_people()
    host.limit_people()
    return ran


def understood(root: Path, unit: str, *names: str) -> dict[str, str]:
    """systemd's values of these settings of a slice, whose drop-ins it finds itself."""
    units = root / "etc/systemd/system"
    (units / unit).write_text("[Unit]\nDescription=a person\n")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(units / unit)],
        env={"SYSTEMD_UNIT_PATH": f"{units}:", "SYSTEMD_LOG_LEVEL": "debug", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    of_unit = done.stdout.replace(str(2**64 - 1), "infinity").partition(f"-> Unit {unit}:")[2].partition("-> Unit ")[0]
    return {name: found[1] for name in names if (found := re.search(rf"^\s*{name}: (.*)$", of_unit, re.MULTILINE))}


@pytest.mark.parametrize(("vcpus", "quota"), [(2, "1s"), (4, "2s"), (16, "8s")])
def test_a_person_has_half_of_the_cpus_but_at_least_one(tmp_path: Path, vcpus: int, quota: str) -> None:
    written(tmp_path, vcpus)
    assert understood(tmp_path, "user-2000.slice", "CPUQuotaPerSecSec") == {"CPUQuotaPerSecSec": quota}


def test_a_fork_bomb_ends_at_a_thousand_processes(tmp_path: Path) -> None:
    written(tmp_path, 4)
    assert understood(tmp_path, "user-2000.slice", "TasksMax") == {"TasksMax": "1024"}


def test_a_memory_hog_is_killed_and_not_slowed_down(tmp_path: Path) -> None:
    written(tmp_path, 4)
    limits = understood(tmp_path, "user-2000.slice", "MemoryHigh", "MemoryMax", "MemorySwapMax")
    assert (limits["MemoryHigh"], limits["MemorySwapMax"]) == ("infinity", "0")
    assert limits["MemoryMax"] != "infinity"


def test_root_is_not_limited(tmp_path: Path) -> None:
    written(tmp_path, 4)
    assert understood(tmp_path, "user-0.slice", "CPUQuotaPerSecSec", "MemoryMax", "TasksMax") == {
        "CPUQuotaPerSecSec": "infinity",
        "MemoryMax": "infinity",
        "TasksMax": "infinity",
    }


@pytest.mark.parametrize("name", ["cron.allow", "at.allow"])
def test_nobody_but_root_may_start_something_later_outside_of_the_limits(tmp_path: Path, name: str) -> None:
    written(tmp_path, 4)
    file = tmp_path / "etc" / name
    names = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    assert (names, file.stat().st_mode & 0o777) == (["root"], 0o644)


def test_systemd_reads_the_limits_once(tmp_path: Path) -> None:
    assert written(tmp_path, 4) == ["systemctl daemon-reload"]
