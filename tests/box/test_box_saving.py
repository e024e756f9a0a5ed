"""The saved cloud: all services come back, and a disk that cannot be written is told, not fatal."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import boxes
from corral.box import control, state
from corral.box.control import BoxError
from corral.box.directory import StateDirectory

HEADER = json.dumps(state.versions()).encode() + b"\n"


def test_a_save_that_fails_is_told_and_made_up_for(state_directory: Path) -> None:
    status = control.start(state_directory)
    s3 = boxes.client(status, "s3")
    in_the_way = state_directory / "cloud.new"
    in_the_way.mkdir()
    s3.create_bucket(Bucket="first")
    failed = control.status(state_directory).problem
    in_the_way.rmdir()
    control.reset(state_directory)
    assert (failed, control.status(state_directory).problem) == (
        "the cloud could not be saved: Is a directory",
        None,
    )


def test_every_service_that_the_stacks_use_comes_back_after_a_restart(state_directory: Path) -> None:
    status = control.start(state_directory)
    for service, action, parameters in (
        ("ec2", "create_vpc", {"CidrBlock": "10.0.0.0/16"}),
        ("s3", "create_bucket", {"Bucket": "kept"}),
        ("kms", "create_key", {"KeySpec": "RSA_2048", "KeyUsage": "SIGN_VERIFY"}),
        ("ssm", "put_parameter", {"Name": "/kept", "Value": "x", "Type": "String"}),
        ("sqs", "create_queue", {"QueueName": "kept"}),
        ("sns", "create_topic", {"Name": "kept"}),
        ("efs", "create_file_system", {"CreationToken": "kept"}),
        ("logs", "create_log_group", {"logGroupName": "kept"}),
        ("secretsmanager", "create_secret", {"Name": "kept"}),
        ("iam", "create_instance_profile", {"InstanceProfileName": "kept"}),
        ("route53", "create_hosted_zone", {"Name": "kept.internal", "CallerReference": "1"}),
        ("dynamodb", "list_tables", {}),
        ("events", "put_rule", {"Name": "kept", "ScheduleExpression": "rate(1 hour)"}),
        ("resourcegroupstaggingapi", "get_resources", {"ResourcesPerPage": 1}),
        ("cloudwatch", "put_metric_data", {"Namespace": "kept", "MetricData": [{"MetricName": "m", "Value": 1.0}]}),
    ):
        getattr(boxes.client(status, service), action)(**parameters)
    before = control.inventory(state_directory)
    control.stop(state_directory)
    control.start(state_directory)
    assert (len(before), control.inventory(state_directory)) == (12, before)


def test_a_bucket_name_stays_taken_after_a_restart(state_directory: Path) -> None:
    boxes.client(control.start(state_directory), "s3").create_bucket(Bucket="taken")
    control.stop(state_directory)
    s3 = boxes.client(control.start(state_directory), "s3")
    s3.put_object(Bucket="taken", Key="a", Body=b"1")
    assert s3.get_object(Bucket="taken", Key="a")["Body"].read() == b"1"


def told_of(home: StateDirectory) -> str:
    """What a start says of the state that it cannot read."""
    with pytest.raises(state.Unreadable) as raised:
        state.load(home)
    return str(raised.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (HEADER, "it ends too early"),
        (HEADER + pickle.dumps(["x" * 1000])[:500], "it ends too early"),
        (bytes(range(256)) * 20, "it does not begin as a saved cloud does"),
        (b"[1]\n", "it does not begin as a saved cloud does"),
        (b"{}\n", "it does not begin as a saved cloud does"),
        (HEADER + b"whatever", "it holds no cloud: invalid load key, 'w'."),
        (HEADER + pickle.dumps(5), "it holds no cloud: 'int' object is not iterable"),
    ],
    ids=["empty", "header", "truncated", "random", "list", "no-versions", "garbage", "number"],
)
def test_a_damaged_state_is_told_with_what_is_lost_and_what_helps(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "cloud.pickle").write_bytes(content)
    assert told_of(StateDirectory(tmp_path)) == (
        f"{tmp_path}/cloud.pickle is damaged ({reason}): all that is up in this box is lost with it"
        f" - restore the file from a copy, or start empty: `corral box reset --dir {tmp_path}`"
    )


def test_a_directory_in_the_place_of_the_state_is_told(tmp_path: Path) -> None:
    (tmp_path / "cloud.pickle").mkdir()
    assert "/cloud.pickle is damaged (it is a directory): " in told_of(StateDirectory(tmp_path))


def test_a_state_of_another_moto_is_told_with_both_versions(tmp_path: Path) -> None:
    header = json.dumps({**state.versions(), "moto": "4.0.0"}).encode()
    (tmp_path / "cloud.pickle").write_bytes(header + b"\n")
    assert told_of(StateDirectory(tmp_path)) == (
        f"{tmp_path}/cloud.pickle was saved by moto 4.0.0 (this is {state.versions()['moto']}) - install that again,"
        f" or give up what is up in this box and start empty: `corral box reset --dir {tmp_path}`"
    )


def test_a_state_that_may_not_be_read_is_told_as_such(tmp_path: Path) -> None:
    file = tmp_path / "cloud.pickle"
    file.touch(mode=0)
    question = (
        "import sys, pathlib; from corral.box import state; from corral.box.directory import StateDirectory\n"
        "try: state.load(StateDirectory(pathlib.Path(sys.argv[1])))\n"
        "except state.Unreadable as error: print(error)"
    )
    command = ["unshare", "--user", sys.executable, "-c", question, str(tmp_path)]  # root may read everything
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told == (
        f"{file} cannot be read: Permission denied - the cloud of this box is saved in it; see who owns it\n"
    )


def test_an_object_that_is_missing_is_the_file_that_is_named(state_directory: Path) -> None:
    s3 = boxes.client(control.start(state_directory), "s3")
    s3.create_bucket(Bucket="large")
    s3.put_object(Bucket="large", Key="a", Body=b"x" * 100_000)
    control.stop(state_directory)
    (content,) = (state_directory / "objects").iterdir()
    content.unlink()
    with pytest.raises(BoxError) as refused:
        control.start(state_directory)
    assert str(refused.value).startswith(f"{content} is damaged (it is missing): all that is up in this box is lost")


def test_reset_removes_a_directory_in_the_place_of_the_state(state_directory: Path) -> None:
    (state_directory / "cloud.pickle").mkdir(parents=True)
    control.reset(state_directory)
    assert control.start(state_directory).state == "running"


def test_a_box_that_could_not_save_at_its_end_says_what_is_lost(state_directory: Path) -> None:
    control.start(state_directory)
    (state_directory / "cloud.new").mkdir()
    with pytest.raises(BoxError) as told:
        control.stop(state_directory)
    assert str(told.value) == (
        f"the box in {state_directory} has stopped, but could not save its state: what changed since the last save is"
        f" lost (see {state_directory}/box.log)"
    )


def on_small_disk(directory: Path, size: str, command: str) -> str:
    """What the shell command prints with a disk of this size at the directory, `$1`."""
    mount = f'mount -t tmpfs -o size={size} none "$1" && {command}'
    call = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh", str(directory)]
    return subprocess.run(call, capture_output=True, text=True, check=False).stderr


def test_a_box_is_not_started_where_it_could_not_save(tmp_path: Path) -> None:
    told = on_small_disk(tmp_path, "1m", f'{sys.executable} -m corral.cli box start --dir "$1"')
    first, _, rest = told.partition(" KiB")
    assert (first.rpartition(" ")[0], rest) == (
        f"corral: the box in {tmp_path} was not started:",
        " are free on the disk of that directory, a box needs 4 MiB - free some, or choose another with --dir\n",
    )


def test_a_running_box_on_a_full_disk_says_how_much_is_free_and_needed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    (tmp_path / "disk").mkdir()
    script.write_text(
        "import os, pathlib, sys, boxes\n"
        "from corral.box import control\n"
        "home = pathlib.Path(sys.argv[1])\n"
        "status = control.start(home)\n"
        "(home / 'fill').write_bytes(b'')\n"
        "with open(home / 'fill', 'wb', buffering=0) as file:\n"
        "    try:\n"
        "        while file.write(bytes(4096)): pass\n"
        "    except OSError: pass\n"
        "boxes.client(status, 's3').create_bucket(Bucket='lost')\n"
        "print(control.status(home).problem, file=sys.stderr)\n"
        "(home / 'fill').unlink()\n"
        "control.stop(home)\n"
    )
    tests = Path(__file__).parents[1]
    told = on_small_disk(tmp_path / "disk", "8m", f'PYTHONPATH={tests} {sys.executable} {script} "$1"')
    assert (told.partition(": 0 KiB")[0], told.partition("directory, ")[2]) == (
        "the cloud could not be saved: No space left on device",
        "a box needs 4 MiB - free some: what is made now is lost when the box ends\n",
    )


def test_a_box_whose_machines_have_no_room_says_so(tmp_path: Path) -> None:
    box = f"{sys.executable} -m corral.cli box"
    told = on_small_disk(
        tmp_path, "24m", f'{box} start --dir "$1" && {box} status --dir "$1" >&2; {box} stop --dir "$1"'
    )
    assert (told.count("it has a problem: "), f"the disk of {tmp_path}, its machines need 32 MiB" in told) == (
        1,
        True,
    )


def test_nothing_can_be_up_where_no_box_ever_was(tmp_path: Path) -> None:
    assert control.has_state(tmp_path / "never") is False


def test_a_saved_cloud_may_hold_something(state_directory: Path) -> None:
    control.start(state_directory)
    control.stop(state_directory)
    assert control.has_state(state_directory) is True


def test_the_state_of_a_stack_may_tell_of_something(tmp_path: Path) -> None:
    stack = tmp_path / "pulumi/.pulumi/stacks/corral-base/dev.json"
    stack.parent.mkdir(parents=True)
    stack.touch()
    assert control.has_state(tmp_path) is True
