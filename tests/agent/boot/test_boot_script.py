"""boot.sh from the user data, with a fake python3 and sleep, and its paths below a directory."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from corral.model.enums import Role
from corral.render import user_data
from render.plans import boot_facts, dev

AGAIN = "var/lib/cloud/scripts/per-boot/corral-again"
# Succeeds as soon as it has failed as often as the file says; fetching is its first part.
PYTHON = """#!/bin/sh
case "$2" in *fetch.py) exit 0 ;; esac
left=$(cat {root}/fails)
echo "reason $left"
[ "$left" = 0 ] || { echo $((left - 1)) >{root}/fails; exit 1; }
"""
PROGRAMS = {
    "python3": PYTHON,
    "sleep": '#!/bin/sh\necho "$1" >>{root}/slept\n',
    "timeout": '#!/bin/sh\nshift\nexec "$@"\n',
    "poweroff": "#!/bin/sh\ntouch {root}/off\n",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where its files are, and how often its boot will fail."""

    root: Path

    def boots(self, role: Role, fails: int) -> int:
        """The exit code of its boot."""
        files = {
            one["path"]: one["content"] for one in yaml.safe_load(user_data(dev(), role, boot_facts()))["write_files"]
        }
        text = files["/opt/corral/boot.sh"]
        for path in ("/opt/corral", "/var/log", "/var/lib", "/dev/console"):
            text = text.replace(path, f"{self.root}{path}")
        (self.root / "fails").write_text(str(fails))
        return subprocess.run(["sh", "-c", text], env={"PATH": f"{self.root}/bin:/usr/bin:/bin"}).returncode

    def lines(self, path: str) -> list[str]:
        file = self.root / path
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for directory in ("bin", "dev", "var/log", "opt/corral"):
        (tmp_path / directory).mkdir(parents=True)
    for name, text in PROGRAMS.items():
        (tmp_path / "bin" / name).write_text(text.replace("{root}", str(tmp_path)))
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "opt/corral/boot.sh").touch()
    return Machine(root=tmp_path)


def test_a_head_that_boots_at_once_waits_for_nothing_and_does_not_boot_again(machine: Machine) -> None:
    seen = machine.boots(Role.HEAD, 0), machine.lines("slept"), (machine.root / AGAIN).is_symlink()
    assert seen == (0, [], False)


def test_a_head_retries_and_logs_the_reason(machine: Machine) -> None:
    assert (machine.boots(Role.HEAD, 2), machine.lines("slept"), machine.lines("dev/console")[:3]) == (
        0,
        ["15", "30"],
        ["corral: head of dev cannot boot:", "reason 2", "corral: retrying in 15 s"],
    )


def test_a_head_that_has_booted_at_last_does_not_boot_again(machine: Machine) -> None:
    machine.boots(Role.HEAD, 2)
    assert not (machine.root / AGAIN).is_symlink()


def test_a_head_gives_up_until_it_is_booted_again(machine: Machine) -> None:
    assert (machine.boots(Role.HEAD, 9), machine.lines("slept"), (machine.root / AGAIN).readlink()) == (
        1,
        ["15", "30", "60", "120", "240"],
        machine.root / "opt/corral/boot.sh",
    )


def test_an_interrupted_boot_is_repeated_at_the_next_one(machine: Machine) -> None:
    """As long as it has not succeeded cloud-init starts it at each boot."""
    (machine.root / "bin/python3").write_text(f"#!/bin/sh\n[ -L {machine.root}/{AGAIN} ] && echo linked\n")
    machine.boots(Role.HEAD, 0)
    assert "linked" in machine.lines("var/log/corral-boot.log")


def test_a_compute_machine_tries_once_and_powers_off(machine: Machine) -> None:
    code = machine.boots(Role.COMPUTE, 1)
    assert (code, machine.lines("slept"), (machine.root / "off").exists()) == (1, [], True)
