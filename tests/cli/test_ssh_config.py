"""`corral ssh-config` and `corral connect`, where somebody else may set tags or wrote the working directory."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from calls import corral

import boxes
from corral.box.client import BoxStatus

pytestmark = pytest.mark.box
NAMES = ("login-1", "login-1 github.com", "l\n    ProxyCommand touch owned #\nHost *")


def launch(box: BoxStatus, names: tuple[str, ...]) -> list[str]:
    """The ids of machines of dev that are tagged as its login nodes, under these names."""
    ec2 = boxes.client(box, "ec2")
    vpc = ec2.create_vpc(CidrBlock="10.64.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.64.1.0/24", AvailabilityZone="us-east-1a")["Subnet"]["SubnetId"]
    image = boxes.client(box, "ssm").get_parameter(Name="/corral-box/ami")["Parameter"]["Value"]
    wanted = {"ImageId": image, "InstanceType": "m7i.large", "SubnetId": subnet, "MinCount": 1, "MaxCount": 1}
    ids = []
    for name in names:
        tags = [
            {"Key": f"corral:{key}", "Value": value}
            for key, value in (("base", "dev"), ("cluster", "dev"), ("login", name))
        ]
        specification = [{"ResourceType": "instance", "Tags": tags}]
        made = ec2.run_instances(**wanted, TagSpecifications=specification)
        ids.append(str(made["Instances"][0]["InstanceId"]))
    return ids


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """The state directory of a box without machines, and the ids of its instances by what they are tagged as."""
    with boxes.running_box(tmp_path_factory.mktemp("tagged") / "box") as box:
        yield box.dir, dict(zip(NAMES, launch(box, NAMES), strict=True))


def test_no_tag_adds_a_host_or_a_line(tagged: tuple[Path, Mapping[str, str]]) -> None:
    done = corral("ssh-config", "dev", "--box-dir", str(tagged[0]))
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["Host", "HostName", "User", "ProxyCommand"]
    assert lines[:2] == ["Host dev-login-1", f"    HostName {tagged[1]['login-1']}"]


@pytest.mark.parametrize("command", ["ssh-config", "connect", "status"])
def test_a_tag_that_is_no_name_is_reported_with_its_machine(
    tagged: tuple[Path, Mapping[str, str]], command: str
) -> None:
    done = corral(command, "dev", "--box-dir", str(tagged[0]))
    warned = [line.split()[1] for line in done.stderr.splitlines() if "is not the name of a login node" in line]
    assert sorted(warned) == sorted(tagged[1][name] for name in NAMES[1:])


def test_the_entry_runs_nothing_of_the_directory_that_ssh_starts_in(
    tagged: tuple[Path, Mapping[str, str]], tmp_path: Path
) -> None:
    done = corral("ssh-config", "dev", "--box-dir", str(tagged[0]))
    command = done.stdout.splitlines()[3].removeprefix("    ProxyCommand ").replace("%%", "%")
    (tmp_path / "corral").mkdir()
    (tmp_path / "corral" / "__init__.py").write_text("open('owned', 'w').close()")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ssh = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert f"{tagged[1]['login-1']} does not run as a machine" in ssh.stderr
    assert not (tmp_path / "owned").exists()
