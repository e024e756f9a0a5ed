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

BOOTED = "var/lib/cloud/instance/corral-booted"
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
    for directory in ("bin", "dev", "var/log", "var/lib/cloud/instance/sem", "opt/corral"):
        (tmp_path / directory).mkdir(parents=True)
    for name, text in PROGRAMS.items():
        (tmp_path / "bin" / name).write_text(text.replace("{root}", str(tmp_path)))
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "opt/corral/boot.sh").touch()
    return Machine(root=tmp_path)


def test_a_head_that_boots_at_once_waits_for_nothing_and_does_not_boot_again(machine: Machine) -> None:
    seen = machine.boots(Role.HEAD, 0), machine.lines("slept"), (machine.root / BOOTED).exists()
    assert seen == (0, [], True)


def test_a_head_retries_and_logs_the_reason(machine: Machine) -> None:
    assert (machine.boots(Role.HEAD, 2), machine.lines("slept"), machine.lines("dev/console")[:3]) == (
        0,
        ["15", "30"],
        ["corral: head of dev cannot boot:", "reason 2", "corral: retrying in 15 s"],
    )


def test_a_head_that_has_booted_at_last_does_not_boot_again(machine: Machine) -> None:
    machine.boots(Role.HEAD, 2)
    assert (machine.root / BOOTED).exists()


def test_a_head_gives_up_until_it_is_booted_again(machine: Machine) -> None:
    assert (machine.boots(Role.HEAD, 9), machine.lines("slept"), (machine.root / BOOTED).exists()) == (
        1,
        ["15", "30", "60", "120", "240"],
        False,
    )


@pytest.mark.parametrize("role", [Role.HEAD, Role.COMPUTE])
@pytest.mark.parametrize("booted", [False, True])
def test_until_a_boot_has_succeeded_each_one_does_again_what_cloud_init_does_once(
    machine: Machine, role: Role, booted: bool
) -> None:
    for name in ("write_files", "runcmd", "scripts_user", "ssh"):
        (machine.root / f"var/lib/cloud/instance/sem/config_{name}").touch()
    if booted:
        (machine.root / BOOTED).touch()
    (command,) = yaml.safe_load(user_data(dev(), role, boot_facts()))["bootcmd"]
    subprocess.run(["sh", "-c", command.replace("/var/lib", f"{machine.root}/var/lib")], check=True)
    left = {file.name for file in (machine.root / "var/lib/cloud/instance/sem").iterdir()}
    once = {"config_write_files", "config_runcmd", "config_scripts_user"}
    assert left == {"config_ssh", *(once if booted else ())}


@pytest.mark.parametrize(("fails", "booted"), [(0, True), (1, False)])
def test_a_compute_machine_that_has_booted_does_not_boot_again(machine: Machine, fails: int, booted: bool) -> None:
    machine.boots(Role.COMPUTE, fails)
    assert (machine.root / BOOTED).exists() is booted


def test_a_compute_machine_tries_once_and_powers_off(machine: Machine) -> None:
    code = machine.boots(Role.COMPUTE, 1)
    assert (code, machine.lines("slept"), (machine.root / "off").exists()) == (1, [], True)
