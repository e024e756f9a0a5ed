"""The saved cloud: all services survive a restart, and a failed save is reported and not fatal."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import boxes
from boxes import inventory
from corral.box import client
from corral.box.client import BoxError
from corral.box.state import backend, saved_state
from corral.box.state.directory import StateDirectory
from corral.box.state.ownership import ownership_problem
from corral.box.state.saved_objects import LargeObjects

HEADER = json.dumps(saved_state.versions()).encode() + b"\n"


def test_a_failed_save_is_reported_and_repeated(state_directory: Path) -> None:
    status = boxes.start(state_directory)
    s3 = boxes.client(status, "s3")
    in_the_way = state_directory / "cloud.new"
    in_the_way.mkdir()
    s3.create_bucket(Bucket="first")
    failed = client.status(state_directory).problem
    in_the_way.rmdir()
    client.reset(state_directory)
    assert (failed, client.status(state_directory).problem) == (
        "the cloud could not be saved: Is a directory",
        None,
    )


def test_a_cloud_that_is_slow_to_save_is_saved_a_second_after_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "QUICK_S", -1.0)  # every save counts as slow
    file, cloud = tmp_path / "cloud.pickle", backend.CloudState(StateDirectory(tmp_path))
    cloud.open()
    cloud.changed()
    at_once, deadline = file.exists(), time.monotonic() + 60
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (at_once, file.exists(), backend.QUIET_S) == (False, True, 1.0)


def test_every_service_that_the_stacks_use_comes_back_after_a_restart(state_directory: Path) -> None:
    status = boxes.start(state_directory)
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
    before = inventory(state_directory)
    client.stop(state_directory)
    boxes.start(state_directory)
    assert (len(before), inventory(state_directory)) == (12, before)


def test_a_bucket_name_stays_taken_after_a_restart(state_directory: Path) -> None:
    boxes.client(boxes.start(state_directory), "s3").create_bucket(Bucket="taken")
    client.stop(state_directory)
    s3 = boxes.client(boxes.start(state_directory), "s3")
    s3.put_object(Bucket="taken", Key="a", Body=b"1")
    assert s3.get_object(Bucket="taken", Key="a")["Body"].read() == b"1"


def load_error(home: StateDirectory) -> str:
    """The error of a start with an unreadable state."""
    with pytest.raises(saved_state.UnreadableState) as raised:
        saved_state.load(home)
    return str(raised.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (HEADER, "it is truncated"),
        (HEADER + pickle.dumps(["x" * 1000])[:500], "it is truncated"),
        (bytes(range(256)) * 20, "it has no valid header"),
        (b"[1]\n", "it has no valid header"),
        (b"{}\n", "it has no valid header"),
        (HEADER + b"whatever", "it holds no saved cloud: invalid load key, 'w'."),
        (HEADER + pickle.dumps(5), "it holds no saved cloud: 'int' object is not iterable"),
    ],
    ids=["empty", "header", "truncated", "random", "list", "no-versions", "garbage", "number"],
)
def test_a_corrupt_state_is_reported_with_the_loss_and_the_remedy(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "cloud.pickle").write_bytes(content)
    assert load_error(StateDirectory(tmp_path)) == (
        f"{tmp_path}/cloud.pickle is damaged ({reason}): the state of this box is lost"
        f" - restore the file from a copy, or start empty: `corral box reset --dir {tmp_path}`"
    )


def test_a_directory_instead_of_the_state_is_reported(tmp_path: Path) -> None:
    (tmp_path / "cloud.pickle").mkdir()
    assert "/cloud.pickle is damaged (it is a directory): " in load_error(StateDirectory(tmp_path))


class Exploit:
    """An object whose pickle runs a command when it is read."""

    def __init__(self, command: str) -> None:
        self._command = command

    def __reduce__(self) -> Any:
        return os.system, (self._command,)


def test_a_pickle_that_runs_a_command_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "cloud.pickle").write_bytes(HEADER + pickle.dumps(Exploit(f"touch {tmp_path}/run")))
    refused = "is damaged (it holds no saved cloud: posix.system does not belong in one)"
    assert (refused in load_error(StateDirectory(tmp_path)), (tmp_path / "run").exists()) == (True, False)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("moto.core.utils", "inspect.os.system"),
        ("moto.core.responses", "ChainMap"),
        ("moto.core.utils", "camelcase_to_underscores"),
        ("builtins", "eval"),
    ],
    ids=["what a module imports", "a class that a module imports", "a function of moto", "a builtin"],
)
def test_a_pickle_names_classes_only(tmp_path: Path, module: str, name: str) -> None:
    named = b"\x80\x04\x8c" + bytes([len(module)]) + module.encode() + b"\x8c" + bytes([len(name)]) + name.encode()
    (tmp_path / "cloud.pickle").write_bytes(HEADER + named + b"\x93.")
    assert f"{module}.{name} does not belong in one" in load_error(StateDirectory(tmp_path))


def test_what_cannot_be_loaded_again_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(pickle.PicklingError, match=r"^pathlib\.PosixPath does not belong in a saved cloud$"):
        saved_state.CloudPickler(io.BytesIO(), LargeObjects(tmp_path)).dump(tmp_path)


def test_a_state_that_others_can_write_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "cloud.pickle").write_bytes(HEADER + b"whatever")
    (tmp_path / "cloud.pickle").chmod(0o620)
    assert load_error(StateDirectory(tmp_path)) == (
        f"{tmp_path}/cloud.pickle can be written by its group, and a box would run what it holds - if nobody else has"
        f" changed it, run `chmod go-w {tmp_path}/cloud.pickle`"
    )


def test_a_state_in_a_directory_that_others_can_write_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "cloud.pickle").write_bytes(HEADER + b"whatever")
    tmp_path.chmod(0o777)
    assert load_error(StateDirectory(tmp_path)) == (
        f"{tmp_path} can be written by every user, and a box would run what it holds - if nobody else has changed"
        f" it, run `chmod go-w {tmp_path}`"
    )


def test_a_state_of_another_user_is_named_with_its_owner(tmp_path: Path) -> None:
    theirs = os.stat_result((0o40700, 1, 1, 2, 4_000_000_001, 0, 0, 0, 0, 0))
    assert (ownership_problem(tmp_path, theirs) or "").startswith(
        f"{tmp_path} belongs to user 4000000001, and a box of "
    )


def test_a_state_of_this_user_alone_is_read(tmp_path: Path) -> None:
    assert ownership_problem(tmp_path, tmp_path.stat()) is None


def test_a_state_of_another_moto_is_reported_with_both_versions(tmp_path: Path) -> None:
    header = json.dumps({**saved_state.versions(), "moto": "4.0.0"}).encode()
    (tmp_path / "cloud.pickle").write_bytes(header + b"\n")
    assert load_error(StateDirectory(tmp_path)) == (
        f"{tmp_path}/cloud.pickle was saved by moto 4.0.0 (this is {saved_state.versions()['moto']}) - install that"
        f" version, or discard the state of this box: `corral box reset --dir {tmp_path}`"
    )


def test_an_unreadable_state_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "cloud.pickle"
    file.touch(mode=0)
    question = (
        "import sys, pathlib; from corral.box.state import saved_state as state\n"
        "from corral.box.state.directory import StateDirectory\n"
        "try: state.load(StateDirectory(pathlib.Path(sys.argv[1])))\n"
        "except state.UnreadableState as error: print(error)"
    )
    command = ["unshare", "--user", sys.executable, "-c", question, str(tmp_path)]  # root may read everything
    result = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert result == (f"{file} cannot be read: Permission denied - it holds the state of this box; check its owner\n")


def test_a_missing_object_file_is_named(state_directory: Path) -> None:
    s3 = boxes.client(boxes.start(state_directory), "s3")
    s3.create_bucket(Bucket="large")
    s3.put_object(Bucket="large", Key="a", Body=b"x" * 100_000)
    client.stop(state_directory)
    (content,) = (state_directory / "objects").iterdir()
    content.unlink()
    with pytest.raises(BoxError) as refused:
        boxes.start(state_directory)
    assert str(refused.value).startswith(f"{content} is damaged (it is missing): the state of this box is lost")


def test_reset_removes_a_directory_instead_of_the_state(state_directory: Path) -> None:
    (state_directory / "cloud.pickle").mkdir(parents=True)
    client.reset(state_directory)
    assert boxes.start(state_directory).state == "running"


def test_a_box_that_cannot_save_at_its_end_reports_the_loss(state_directory: Path) -> None:
    boxes.start(state_directory)
    (state_directory / "cloud.new").mkdir()
    with pytest.raises(BoxError) as result:
        client.stop(state_directory)
    assert str(result.value) == (
        f"the box in {state_directory} has stopped, but could not save its state: changes since the last save are lost"
        f" (see {state_directory}/box.log)"
    )


def on_small_disk(directory: Path, size: str, command: str) -> str:
    """What the shell command prints with a disk of this size at the directory, `$1`."""
    mount = f'mount -t tmpfs -o size={size},mode=700 none "$1" && {command}'
    call = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh", str(directory)]
    return subprocess.run(call, capture_output=True, text=True, check=False).stderr


def test_a_box_is_not_started_where_it_could_not_save(tmp_path: Path) -> None:
    result = on_small_disk(tmp_path, "1m", f'{sys.executable} -m corral.cli box start --dir "$1"')
    first, _, rest = result.partition(" KiB")
    assert (first.rpartition(" ")[0], rest) == (
        f"corral: the box in {tmp_path} was not started: the disk of that directory has",
        " free, a box needs 4 MiB - free some, or choose another with --dir\n",
    )


def test_a_running_box_on_a_full_disk_reports_free_and_required_space(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    (tmp_path / "disk").mkdir()
    script.write_text(
        "import os, pathlib, sys, boxes\n"
        "from corral.box import client\n"
        "home = pathlib.Path(sys.argv[1])\n"
        "status = boxes.start(home)\n"
        "(home / 'fill').write_bytes(b'')\n"
        "with open(home / 'fill', 'wb', buffering=0) as file:\n"
        "    try:\n"
        "        while file.write(bytes(4096)): pass\n"
        "    except OSError: pass\n"
        "boxes.client(status, 's3').create_bucket(Bucket='lost')\n"
        "print(client.status(home).problem, file=sys.stderr)\n"
        "(home / 'fill').unlink()\n"
        "client.stop(home)\n"
    )
    tests = Path(__file__).parents[2]
    result = on_small_disk(tmp_path / "disk", "8m", f'PYTHONPATH={tests} {sys.executable} {script} "$1"')
    assert (result.partition(": the disk")[0], result.partition(" has 0 KiB free, ")[2]) == (
        "the cloud could not be saved: No space left on device",
        "a box needs 4 MiB - free some, or new changes are lost when the box ends\n",
    )


def test_a_box_without_space_for_machines_reports_it(tmp_path: Path) -> None:
    box = f"{sys.executable} -m corral.cli box"
    result = on_small_disk(
        tmp_path, "24m", f'{box} start --dir "$1" && {box} status --dir "$1" >&2; {box} stop --dir "$1"'
    )
    assert (result.count("problem: "), "KiB free, its machines need 32 MiB" in result) == (
        1,
        True,
    )


def test_a_missing_directory_has_no_state(tmp_path: Path) -> None:
    assert client.has_state(tmp_path / "never") is False


def test_a_saved_cloud_counts_as_state(state_directory: Path) -> None:
    boxes.start(state_directory)
    client.stop(state_directory)
    assert client.has_state(state_directory) is True


def test_the_state_of_a_stack_counts_as_state(tmp_path: Path) -> None:
    stack = tmp_path / "pulumi/.pulumi/stacks/corral-base/dev.json"
    stack.parent.mkdir(parents=True)
    stack.touch()
    assert client.has_state(tmp_path) is True
