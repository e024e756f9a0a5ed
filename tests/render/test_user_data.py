"""User data: valid, small, and its programs do what they say, up to the machine that they would end."""

import base64
import hashlib
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from corral.model.deployed import BootFacts
from corral.model.jsons import from_json
from corral.model.markets import Role
from corral.render import agent_bundle, user_data
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
def test_encoded_text_is_less_than_a_third_of_the_limit(role: Role) -> None:
    assert len(base64.b64encode(user_data(dev(), role, boot_facts()).encode())) < LIMIT // 3


@pytest.mark.parametrize("role", Role)
def test_shellcheck_finds_nothing(role: Role) -> None:
    done = subprocess.run(["shellcheck", "-"], input=written(role)["boot.sh"], capture_output=True, text=True)
    assert done.stdout == ""


def test_the_facts_come_back_as_they_were() -> None:
    assert from_json(BootFacts, written(Role.HEAD)["boot.json"]) == boot_facts()


def test_only_a_compute_machine_powers_itself_off() -> None:
    assert {role: "poweroff" in written(role)["boot.sh"] for role in Role} == {Role.HEAD: False, Role.COMPUTE: True}


@pytest.mark.parametrize(
    ("role", "daemons"), [(Role.HEAD, ["mariadb-server", "slurmctld", "slurmdbd"]), (Role.COMPUTE, ["slurmd"])]
)
def test_a_machine_installs_the_daemons_of_its_role(role: Role, daemons: Sequence[str]) -> None:
    packages = yaml.safe_load(user_data(dev(), role, boot_facts()))["packages"]
    assert packages == ["munge", "python3-boto3", "slurm-client", *daemons]


# A bucket in a directory, where fetch.py imports boto3 from.
BOTO3 = """
import pathlib
class Client:
    def get_object(self, Bucket, Key):
        return {"Body": open(pathlib.Path(__file__).with_name(Bucket) / Key, "rb")}
def client(service, region_name):
    return Client()
"""


def fetch(tmp_path: Path, sha256: str) -> subprocess.CompletedProcess[str]:
    """What fetch.py did in tmp_path/home, with a bundle in the bucket and this hash expected."""
    facts = replace(boot_facts(), bundle_sha256=sha256)
    (tmp_path / "boto3.py").write_text(BOTO3)
    (tmp_path / facts.bucket / facts.bundle_key).parent.mkdir(parents=True)
    (tmp_path / facts.bucket / facts.bundle_key).write_bytes(agent_bundle())
    home = tmp_path / "home"
    home.mkdir()
    for name, text in written(Role.COMPUTE, facts).items():
        (home / name).write_text(text)
    command = [sys.executable, "-S", str(home / "fetch.py"), str(home)]
    return subprocess.run(command, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)


def test_a_bundle_with_the_right_hash_is_unpacked_and_runs(tmp_path: Path) -> None:
    fetched = fetch(tmp_path, hashlib.sha256(agent_bundle()).hexdigest())
    assert fetched.stderr == ""
    command = [sys.executable, "-S", "-m", "corral.agent", "boot", "--help"]
    done = subprocess.run(command, env={"PYTHONPATH": str(tmp_path / "home" / "agent")}, capture_output=True, text=True)
    assert done.stdout.split()[:3] == ["usage:", "corral-agent", "boot"]


def test_a_bundle_with_another_hash_is_refused_and_left_packed(tmp_path: Path) -> None:
    done = fetch(tmp_path, "0" * 64)
    assert (done.returncode, "has the hash" in done.stderr, (tmp_path / "home" / "agent").exists()) == (1, True, False)
