"""User data: valid, small, and its programs do what they say, up to the machine that they would end."""

import base64
import subprocess
from pathlib import Path

import pytest
import yaml

from corral.model.deployed import BootFacts
from corral.model.enums import Role
from corral.model.serialization import from_json
from corral.render import user_data
from render.plans import boot_facts, dev

LIMIT = 16 * 1024  # of the encoded text, RunInstances


def written(role: Role, facts: BootFacts | None = None) -> dict[str, str]:
    """The files that the user data writes, by name."""
    config = yaml.safe_load(user_data(dev(), role, facts or boot_facts()))
    return {Path(file["path"]).name: file["content"] for file in config["write_files"]}


@pytest.mark.parametrize("role", Role)
def test_cloud_init_finds_it_valid(role: Role, tmp_path: Path) -> None:
    file = tmp_path / "user-data.yaml"
    file.write_text(user_data(dev(), role, boot_facts()))
    done = subprocess.run(["cloud-init", "schema", "-c", str(file)], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split(":")[0]) == (0, "Valid cloud-config")


@pytest.mark.parametrize("role", Role)
def test_encoded_text_is_less_than_five_sixths_of_the_limit(role: Role) -> None:
    assert len(base64.b64encode(user_data(dev(), role, boot_facts()).encode())) < LIMIT * 5 // 6


@pytest.mark.parametrize("role", Role)
def test_shellcheck_finds_nothing(role: Role) -> None:
    done = subprocess.run(["shellcheck", "-"], input=written(role)["boot.sh"], capture_output=True, text=True)
    assert done.stdout == ""


def test_slurmd_does_not_wait_for_a_head_before_the_boot() -> None:
    """Its unit reads the file; -V ends it at once. So an image's slurmd does not delay runcmd, or apt its own."""
    assert written(Role.COMPUTE)["slurmd"] == "SLURMD_OPTIONS=-V\n"


def test_a_head_has_no_slurmd_to_hold_off() -> None:
    assert "slurmd" not in written(Role.HEAD)


@pytest.mark.slurm
def test_slurmd_with_these_options_ends_at_once(tmp_path: Path) -> None:
    """As the unit starts it, apart from --systemd, which releases before 23.11 lack."""
    done = subprocess.run(["slurmd", "-D", "-s", "-V"], capture_output=True, text=True, timeout=10, cwd=tmp_path)
    assert (done.returncode, done.stdout.split()[0]) == (0, "slurm-wlm")


@pytest.mark.slurm
def test_cloud_init_writes_files_before_any_daemon_starts() -> None:
    """Its stage `init` writes them, before sysinit.target; services start after it by default (systemd.service(5))."""
    unit = Path("/lib/systemd/system/cloud-init.service").read_text()
    modules = yaml.safe_load(Path("/etc/cloud/cloud.cfg").read_text())["cloud_init_modules"]
    assert ("Before=sysinit.target\n" in unit, "write-files" in modules) == (True, True)


def test_the_facts_come_back_as_they_were() -> None:
    assert from_json(BootFacts, written(Role.HEAD)["boot.json"]) == boot_facts()


def test_only_a_compute_machine_powers_itself_off() -> None:
    powers_off = {role: "poweroff" in written(role)["boot.sh"] for role in Role}
    assert powers_off == {Role.HEAD: False, Role.COMPUTE: True, Role.LOGIN: False}


@pytest.mark.parametrize("role", Role)
def test_user_data_leaves_packages_to_the_agent(role: Role) -> None:
    assert set(yaml.safe_load(user_data(dev(), role, boot_facts()))) == {"bootcmd", "write_files", "runcmd"}
