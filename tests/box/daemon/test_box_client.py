"""Start, stop and query a box."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import boxes
from boxes import inventory
from corral.box import client
from corral.box.client import BoxError
from corral.box.daemon import daemon_process
from corral.box.secret import read_secret
from corral.box.state import saved_state
from corral.box.state.directory import StateDirectory
from forked_plugins import use_real_python
from forked_programs import UNFORKED


@pytest.fixture(autouse=True)
def real_python(monkeypatch: pytest.MonkeyPatch) -> None:
    use_real_python(monkeypatch)


def test_start_returns_when_the_box_serves(state_directory: Path) -> None:
    status = boxes.start(state_directory)
    assert (status.state, boxes.client(status, "sts").get_caller_identity()["Account"]) == ("running", "123456789012")


def test_a_box_runs_no_module_of_the_working_directory(
    state_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/argparse.py").write_text("raise SystemExit('a module of somebody else')\n")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert boxes.start(state_directory).state == "running"


def test_a_second_start_finds_the_running_box(state_directory: Path) -> None:
    first = boxes.start(state_directory)
    assert boxes.start(state_directory) == first


def test_concurrent_starts_start_one_box(state_directory: Path) -> None:
    pids: list[int | None] = []
    threads = [threading.Thread(target=lambda: pids.append(boxes.start(state_directory).pid)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(pids), len(set(pids))) == (2, 1)


def test_two_boxes_are_isolated_from_each_other(tmp_path: Path) -> None:
    with boxes.running_box(tmp_path / "a") as one, boxes.running_box(tmp_path / "b") as other:
        boxes.client(one, "s3").create_bucket(Bucket="only-in-a")
        assert (inventory(one.dir), inventory(other.dir)) == ({"s3/bucket": ["only-in-a"]}, {})


def test_stop_ends_the_process_and_reports_it(state_directory: Path) -> None:
    pid = boxes.start(state_directory).pid
    stopped = client.stop(state_directory)
    assert (stopped, _runs(pid), client.status(state_directory).state) == (True, False, "stopped")


def test_a_daemon_that_is_not_forked_serves_and_stops(state_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_process, "start_process", UNFORKED)
    pid = boxes.start(state_directory).pid
    command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    assert (command[1:4], client.stop(state_directory), _runs(pid)) == ([b"-P", b"-m", b"corral.box"], True, False)


def _runs(pid: int | None) -> bool:
    command = Path(f"/proc/{pid}/cmdline")
    return command.exists() and command.read_bytes() != b""  # nobody has yet waited for one without


def test_stop_without_a_box_reports_that_none_ran(state_directory: Path) -> None:
    assert client.stop(state_directory) is False


def test_a_killed_box_is_crashed_and_the_next_start_resumes(state_directory: Path) -> None:
    status = boxes.start(state_directory)
    boxes.client(status, "s3").create_bucket(Bucket="kept")
    _kill(status.pid)
    crashed = client.status(state_directory).state
    boxes.start(state_directory)
    assert (crashed, inventory(state_directory)) == ("crashed", {"s3/bucket": ["kept"]})


def test_acknowledged_changes_survive_kill_9(state_directory: Path) -> None:
    status = boxes.start(state_directory)
    ec2 = boxes.client(status, "ec2")
    result = [ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"] for _ in range(4)]
    _kill(status.pid)
    boxes.start(state_directory)
    assert inventory(state_directory) == {"ec2/vpc": sorted(result)}


def test_environment_of_a_crashed_box_suggests_a_start(state_directory: Path) -> None:
    _kill(boxes.start(state_directory).pid)
    with pytest.raises(BoxError, match=r"has crashed - `corral box start` resumes from its last saved state"):
        client.environment(state_directory)


def test_environment_without_a_box_suggests_a_start(state_directory: Path) -> None:
    with pytest.raises(BoxError, match=r"no box runs in .* - start it with `corral box start`"):
        client.environment(state_directory)


def test_environment_points_only_at_the_box(state_directory: Path) -> None:
    status = boxes.start(state_directory)
    environment = dict(client.environment(state_directory))
    path = environment.pop("PATH").split(os.pathsep)[:1]
    secret = read_secret(StateDirectory(state_directory))
    assert (path, environment) == (
        [str(Path(sys.executable).parent)],
        {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{status.port}",
            "AWS_ACCESS_KEY_ID": secret.owner_key,
            "AWS_SECRET_ACCESS_KEY": secret.owner_secret_key,
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "PULUMI_BACKEND_URL": f"file://{state_directory}/pulumi",
            "PULUMI_HOME": f"{state_directory}/pulumi-home",
            "PULUMI_CONFIG_PASSPHRASE": "",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "CORRAL_BOX_DIR": str(state_directory),
            "CORRAL_STACKS": f"{state_directory}/stacks",
            "CORRAL_PYTHON": sys.executable,
        },
    )


def test_reset_empties_the_cloud_and_deletes_its_stack_states(state_directory: Path) -> None:
    status = boxes.start(state_directory)
    boxes.client(status, "s3").create_bucket(Bucket="gone")
    for name in ("pulumi", "pulumi-home", "stacks"):
        (state_directory / name).mkdir(exist_ok=True)
        (state_directory / name / "of-the-old-cloud").touch()
    client.reset(state_directory)
    assert (inventory(state_directory), list(state_directory.glob("*/of-the-old-cloud"))) == ({}, [])


def test_reset_of_a_stopped_box_empties_the_saved_cloud(state_directory: Path) -> None:
    boxes.client(boxes.start(state_directory), "s3").create_bucket(Bucket="gone")
    client.stop(state_directory)
    client.reset(state_directory)
    boxes.start(state_directory)
    assert inventory(state_directory) == {}


@pytest.mark.parametrize("command", [boxes.start, client.stop, client.status, client.reset, client.environment])
def test_a_directory_that_others_can_write_is_refused_before_anything_is_read(
    state_directory: Path, command: Callable[[Path], object]
) -> None:
    state_directory.mkdir()
    (state_directory / "box.json").mkdir()  # would be an error of its own
    state_directory.chmod(0o770)
    with pytest.raises(BoxError) as refused:
        command(state_directory)
    (state_directory / "box.json").rmdir()
    state_directory.chmod(0o700)
    assert str(refused.value) == (
        f"{state_directory} can be written by its group, and a box would run what it holds - if nobody else has changed"
        f" it, run `chmod go-w {state_directory}`"
    )


def test_a_state_saved_by_another_moto_is_refused_in_one_sentence(state_directory: Path) -> None:
    state_directory.mkdir()
    header = json.dumps({**saved_state.versions(), "moto": "4.0.0"}).encode()
    (state_directory / "cloud.pickle").write_bytes(header + b"\nwhatever")
    result = r"was saved by moto 4\.0\.0 \(this is .*discard the state of this box: `corral box reset --dir "
    with pytest.raises(BoxError, match=result):
        boxes.start(state_directory)


def test_a_damaged_state_is_refused_in_one_sentence(state_directory: Path) -> None:
    state_directory.mkdir()
    header = json.dumps(saved_state.versions()).encode()
    (state_directory / "cloud.pickle").write_bytes(header + b"\nwhatever")
    with pytest.raises(BoxError, match=r"cloud.pickle is damaged .* start empty: `corral box reset --dir "):
        boxes.start(state_directory)


def test_a_directory_that_cannot_be_made_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BoxError, match=r"cannot be used as a box's state directory: .* - choose another with --dir"):
        boxes.start(tmp_path / "file" / "state")


def test_other_systems_than_linux_are_refused_in_one_sentence(
    state_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(BoxError, match="the box needs Linux, this is darwin"):
        boxes.start(state_directory)


def test_the_box_listens_on_the_loopback_address_only(state_directory: Path) -> None:
    port = boxes.start(state_directory).port
    listening = [
        line.split()[1]
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for line in Path(table).read_text().splitlines()[1:]
        if line.split()[3] == "0A" and line.split()[1].endswith(f":{port:04X}")
    ]
    assert listening == [f"0100007F:{port:04X}"]


def test_files_are_readable_by_their_owner_only(state_directory: Path) -> None:
    boxes.client(boxes.start(state_directory), "s3").create_bucket(Bucket="private")
    assert _modes(state_directory, "box.json", "cloud.pickle", "box.log", "calls.jsonl", ".") == {
        "box.json": 0o600,
        "cloud.pickle": 0o600,
        "box.log": 0o600,
        "calls.jsonl": 0o600,
        ".": 0o700,
    }


def test_logs_that_others_could_read_become_private(state_directory: Path) -> None:
    state_directory.mkdir()
    for name in ("box.log", "calls.jsonl"):
        (state_directory / name).touch()
        (state_directory / name).chmod(0o644)
    boxes.start(state_directory)
    assert _modes(state_directory, "box.log", "calls.jsonl") == {"box.log": 0o600, "calls.jsonl": 0o600}


def _modes(directory: Path, *names: str) -> dict[str, int]:
    return {name: stat.S_IMODE((directory / name).stat().st_mode) for name in names}


def test_the_provider_plugin_runs_this_python(state_directory: Path) -> None:
    boxes.start(state_directory)
    (plugin,) = state_directory.glob("pulumi-home/plugins/*/pulumi-resource-aws")
    assert (os.access(plugin, os.X_OK), plugin.read_text().splitlines()[-1]) == (
        True,
        f"exec '{sys.executable}' -P -m corral.box.provider \"$@\"",
    )


def test_client_and_control_import_neither_moto_nor_boto3_nor_pulumi() -> None:
    question = "import sys, corral.box.client; print([m for m in ('moto', 'boto3', 'pulumi') if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\n"


def test_a_profile_meant_for_aws_does_not_keep_the_box_from_starting(
    state_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "a-profile-that-this-machine-lacks")
    assert boxes.start(state_directory).state == "running"


def test_a_box_whose_directory_is_removed_ends(state_directory: Path) -> None:
    process = os.pidfd_open(boxes.start(state_directory).pid or 0)
    shutil.rmtree(state_directory)
    ended = select.select([process], [], [], 30)[0] == [process]
    os.close(process)
    assert ended


def test_a_stalled_client_does_not_block_others(state_directory: Path) -> None:
    status = boxes.start(state_directory)
    with socket.create_connection(("127.0.0.1", status.port or 0)) as stalled:
        stalled.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nfirst bytes")
        assert boxes.client(status, "s3").list_buckets()["Buckets"] == []


def _kill(pid: int | None) -> None:
    handle = os.pidfd_open(pid or 0)
    signal.pidfd_send_signal(handle, signal.SIGKILL)
    select.select([handle], [], [])
    os.close(handle)


def test_a_box_that_is_started_again_keeps_its_port(state_directory: Path) -> None:
    first = boxes.start(state_directory).port
    client.stop(state_directory)
    assert boxes.start(state_directory).port == first


def test_a_box_whose_port_is_taken_uses_another(state_directory: Path) -> None:
    port = boxes.start(state_directory).port
    client.stop(state_directory)
    with socket.create_server(("127.0.0.1", int(port or 0))):
        assert boxes.start(state_directory).port != port


def test_reset_reinstalls_the_stand_in_provider(state_directory: Path) -> None:
    boxes.start(state_directory)
    client.reset(state_directory)
    assert [path.name for path in state_directory.glob("pulumi-home/plugins/*/*")] == ["pulumi-resource-aws"]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"pid": "x"}', "\0\0"])
def test_a_damaged_record_counts_as_missing(state_directory: Path, text: str) -> None:
    state_directory.mkdir()
    (state_directory / "box.json").write_text(text)
    assert client.status(state_directory).state == "stopped"
