"""`corral connect`: a command on the head of a box, what it says where there is no head to enter, and AWS's way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from calls import clean_environment, corral

import boxes
from corral.box import control
from corral.box.control import BoxStatus

pytestmark = pytest.mark.box
BOOTED_IN_S = 30  # ten times what it takes
PLUGIN = "session-manager-plugin"


def launch_head(box: BoxStatus, user_data: str) -> str:
    """The id of an instance that is the head of dev by its tags."""
    ec2 = boxes.client(box, "ec2")
    vpc = ec2.create_vpc(CidrBlock="10.64.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.64.1.0/24", AvailabilityZone="us-east-1a")["Subnet"]["SubnetId"]
    image = boxes.client(box, "ssm").get_parameter(Name="/corral-box/ami")["Parameter"]["Value"]
    tags = [{"Key": f"corral:{key}", "Value": "dev"} for key in ("base", "cluster")]
    specification = [{"ResourceType": "instance", "Tags": tags}]
    wanted = {"ImageId": image, "InstanceType": "m7i.large", "SubnetId": subnet, "TagSpecifications": specification}
    made = ec2.run_instances(**wanted, UserData=user_data, MinCount=1, MaxCount=1)
    return str(made["Instances"][0]["InstanceId"])


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The state directory of a box in which dev's head is a machine."""
    with boxes.running_box(tmp_path_factory.mktemp("head") / "box", machines=True) as box:
        instance_id = launch_head(box, "#!/bin/sh\n")
        deadline = time.monotonic() + BOOTED_IN_S
        while instance_id not in control.machines(box.dir):
            assert time.monotonic() < deadline, f"no machine within {BOOTED_IN_S} s"
            time.sleep(0.1)
        yield box.dir


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BoxStatus, str]]:
    """A box without machines in which dev has a head, and the head's id."""
    with boxes.running_box(tmp_path_factory.mktemp("records") / "box") as box:
        yield box, launch_head(box, "#!/bin/sh\n")


@pytest.fixture
def account(records: tuple[BoxStatus, str], tmp_path: Path) -> dict[str, str]:
    """The environment of somebody whose AWS has that head: their settings name it, and no box of theirs runs."""
    names = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    settings = {name: control.environment(records[0].dir)[name] for name in names}
    return {**clean_environment(tmp_path, **settings), "PATH": str(tmp_path)}


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -TERM $$", 143), ("true", 0)])
def test_the_exit_code_is_the_commands(head: Path, script: str, code: int) -> None:
    assert corral("connect", "dev", "--box-dir", str(head), "--", "sh", "-c", script).returncode == code


def test_a_command_has_its_own_output_and_error(head: Path) -> None:
    done = corral("connect", "dev", "--box-dir", str(head), "--", "sh", "-c", "hostname; echo wrong >&2")
    assert (done.stdout, done.stderr) == ("ip-10-64-1-4\n", "wrong\n")


def test_a_program_that_the_head_lacks_is_a_sentence(head: Path) -> None:
    done = corral("connect", "dev", "--box-dir", str(head), "--", "nosuchprog", "-x")
    assert (done.stderr, done.returncode) == ("corral: the head has no program nosuchprog\n", 127)


def test_a_file_that_is_no_program_is_not_said_to_be_missing(head: Path) -> None:
    done = corral("connect", "dev", "--box-dir", str(head), "--", "/etc/passwd")
    assert (done.stderr.rpartition(": ")[2], done.returncode) == ("Permission denied\n", 126)


def test_a_command_keeps_its_words(head: Path) -> None:
    done = corral("connect", "dev", "--box-dir", str(head), "--", "printf", "%s|", "a b", "$HOME", "'")
    assert done.stdout == "a b|$HOME|'|"


def test_without_a_command_it_is_a_shell_of_root(head: Path) -> None:
    done = corral("connect", "dev", "--box-dir", str(head), input="whoami; exit 5\n")
    assert (done.stdout, done.returncode) == ("root\n", 5)


def test_an_environment_that_is_not_up_has_no_head(head: Path) -> None:
    done = corral("connect", "train", "--box-dir", str(head))
    told = f"corral: train has no head now - bring it up: corral up train --box-dir {head}\n"
    assert (done.stderr, done.returncode) == (told, 1)


def test_a_head_that_is_a_record_says_why(records: tuple[BoxStatus, str]) -> None:
    box, instance_id = records
    done = corral("connect", "dev", "--box-dir", str(box.dir))
    told = f"corral: the head {instance_id} is no machine: the box was started without machines\n"
    assert (done.stderr, done.returncode) == (told, 1)


def test_a_head_that_does_not_boot_says_so(tmp_path: Path) -> None:
    with boxes.running_box(tmp_path / "box", machines=True) as box:
        instance_id = launch_head(box, "")
        done = corral("connect", "dev", "--box-dir", str(box.dir))
    told = f"corral: the head {instance_id} is no machine: it has not booted yet, or has ended\n"
    assert (done.stderr, done.returncode) == (told, 1)


def test_a_box_that_has_stopped_cannot_be_asked(tmp_path: Path) -> None:
    done = corral("connect", "dev", "--box-dir", str(tmp_path / "box"))
    told = f"corral: no box runs in {tmp_path}/box - start it with `corral box start`\n"
    assert (done.stderr, done.returncode) == (told, 3)


def test_on_aws_what_is_missing_is_named(account: dict[str, str]) -> None:
    done = corral("connect", "dev", environment=account)
    told = f"corral: aws and {PLUGIN} not found - `corral doctor` says how to install it\n"
    assert (done.stderr, done.returncode) == (told, 1)


@pytest.mark.parametrize(
    ("command", "more"),
    [
        ((), ""),
        (
            ("--", "squeue", "-o", "%A %t"),
            '--document-name AWS-StartInteractiveCommand --parameters {"command": ["squeue -o \'%A %t\'"]}',
        ),
    ],
)
def test_on_aws_it_becomes_a_session(
    account: dict[str, str], records: tuple[BoxStatus, str], tmp_path: Path, command: tuple[str, ...], more: str
) -> None:
    for name in ("aws", PLUGIN):
        (tmp_path / name).write_text('#!/bin/sh\necho "$@"\nexit 9\n')
        (tmp_path / name).chmod(0o755)
    done = corral("connect", "dev", *command, environment=account)
    told = f"ssm start-session --region us-east-1 --target {records[1]} {more}".strip()
    assert (done.stdout.strip(), done.returncode) == (told, 9)
