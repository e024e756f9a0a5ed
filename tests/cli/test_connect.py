"""`corral connect`: a command on the head of a box, errors without a head, and sessions on AWS."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from calls import clean_environment, corral

import boxes
from corral.box import client, control
from corral.box.client import BoxStatus

pytestmark = pytest.mark.box
BOOTED_IN_S = 30  # ten times the usual duration
PLUGIN = "session-manager-plugin"


def launch_head(box: BoxStatus, user_data: str, cluster: str = "dev") -> str:
    """The id of an instance tagged as the cluster's head."""
    ec2 = boxes.client(box, "ec2")
    vpc = ec2.create_vpc(CidrBlock="10.64.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.64.1.0/24", AvailabilityZone="us-east-1a")["Subnet"]["SubnetId"]
    image = boxes.client(box, "ssm").get_parameter(Name="/corral-box/ami")["Parameter"]["Value"]
    tags = [{"Key": f"corral:{key}", "Value": cluster} for key in ("base", "cluster")]
    specification = [{"ResourceType": "instance", "Tags": tags}]
    wanted = {"ImageId": image, "InstanceType": "m7i.large", "SubnetId": subnet, "TagSpecifications": specification}
    made = ec2.run_instances(**wanted, UserData=user_data, MinCount=1, MaxCount=1)
    return str(made["Instances"][0]["InstanceId"])


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The state directory of a box in which the head of dev runs as a machine."""
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
    """An environment whose AWS settings point to that head; its home has no running box."""
    names = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    settings = {name: client.environment(records[0].dir)[name] for name in names}
    return {**clean_environment(tmp_path, **settings), "PATH": str(tmp_path)}


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -TERM $$", 143), ("true", 0)])
def test_exit_code_is_that_of_the_remote_command(head: Path, script: str, code: int) -> None:
    assert corral("connect", "dev", "--box-dir", str(head), "--", "sh", "-c", script).returncode == code


def test_remote_command_has_separate_stdout_and_stderr(head: Path) -> None:
    done = corral("connect", "dev", "--box-dir", str(head), "--", "sh", "-c", "hostname; echo wrong >&2")
    assert (done.stdout, done.stderr) == ("ip-10-64-1-4\n", "wrong\n")


def test_missing_program_is_one_sentence(head: Path) -> None:
    done = corral("connect", "dev", "--box-dir", str(head), "--", "nosuchprog", "-x")
    assert (done.stderr, done.returncode) == ("corral: this machine has no program nosuchprog\n", 127)


def test_file_without_execute_permission_is_not_reported_as_missing(head: Path) -> None:
    done = corral("connect", "dev", "--box-dir", str(head), "--", "/etc/passwd")
    assert (done.stderr.rpartition(": ")[2], done.returncode) == ("Permission denied\n", 126)


def test_arguments_are_passed_unchanged(head: Path) -> None:
    done = corral("connect", "dev", "--box-dir", str(head), "--", "printf", "%s|", "a b", "$HOME", "'")
    assert done.stdout == "a b|$HOME|'|"


def test_no_command_opens_a_root_shell(head: Path) -> None:
    done = corral("connect", "dev", "--box-dir", str(head), input="whoami; exit 5\n")
    assert (done.stdout, done.returncode) == ("root\n", 5)


def test_environment_that_is_not_up_has_no_head(head: Path) -> None:
    done = corral("connect", "mixed", "--box-dir", str(head))
    message = f"corral: mixed has no head now - bring it up: corral up mixed --box-dir {head}\n"
    assert (done.stderr, done.returncode) == (message, 1)


def test_head_without_a_machine_shows_the_reason(records: tuple[BoxStatus, str]) -> None:
    box, instance_id = records
    done = corral("connect", "dev", "--box-dir", str(box.dir))
    message = f"corral: {instance_id} does not run as a machine: the box was started with --machines none\n"
    assert (done.stderr, done.returncode) == (message, 1)


def test_head_that_has_not_booted_shows_the_reason(head: Path) -> None:
    instance_id = launch_head(client.status(head), "", "train")
    done = corral("connect", "train", "--box-dir", str(head))
    message = f"corral: {instance_id} does not run as a machine: it has not booted yet, or has terminated\n"
    assert (done.stderr, done.returncode) == (message, 1)


def test_stopped_box_is_reported(tmp_path: Path) -> None:
    done = corral("connect", "dev", "--box-dir", str(tmp_path / "box"))
    message = f"corral: no box runs in {tmp_path}/box - start it with `corral box start`\n"
    assert (done.stderr, done.returncode) == (message, 3)


def test_missing_tool_for_aws_is_reported(account: dict[str, str]) -> None:
    done = corral("connect", "dev", environment=account)
    message = f"corral: aws and {PLUGIN} not found - `corral doctor` shows how to install it\n"
    assert (done.stderr, done.returncode) == (message, 1)


@pytest.mark.parametrize(
    ("command", "more"),
    [
        ((), "--document-name corral-shell"),
        (("--root",), "--document-name corral-root-shell"),
        (
            ("--", "squeue", "-o", "%A %t"),
            '--document-name corral-shell --parameters {"command": ["squeue -o \'%A %t\'"]}',
        ),
    ],
)
def test_connect_on_aws_starts_a_session(
    account: dict[str, str], records: tuple[BoxStatus, str], tmp_path: Path, command: tuple[str, ...], more: str
) -> None:
    for name in ("aws", PLUGIN):
        (tmp_path / name).write_text('#!/bin/sh\necho "$@"\nexit 9\n')
        (tmp_path / name).chmod(0o755)
    done = corral("connect", "dev", *command, environment=account)
    message = f"ssm start-session --region us-east-1 --target {records[1]} {more}"
    assert (done.stdout.strip(), done.returncode) == (message, 9)


def test_a_person_whom_the_environment_does_not_declare_has_no_ssh_config() -> None:
    done = corral("ssh-config", "dev", "--user", "ada")
    assert (done.returncode, done.stderr) == (2, "corral: access.users of dev has no 'ada' - declare them there\n")
