"""Locks: two commands, the engine of a killed command, and Pulumi's own locks."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from corral.engine.backend.stack_locks import (
    LockHolder,
    file_lock_holders,
    hold_lock,
    lock_holders_in_error,
    state_directory,
)
from corral.engine.engine_errors import EngineError

NOW = datetime.now(UTC)
# Holds the lock until its input ends; its record names another process.
HOLDER = """
import fcntl, os, sys
handle = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(handle, fcntl.LOCK_EX)
os.pwrite(handle, sys.argv[2].encode(), 0)
print("held", flush=True)
sys.stdin.read()
"""


def holder(file: Path, pid: int) -> subprocess.Popen[str]:
    record = json.dumps({"pid": pid, "since": NOW.isoformat(), "command": "corral up dev"})
    command = [sys.executable, "-c", HOLDER, str(file), record]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_lock_of_a_running_command_is_not_awaited_without_wait(tmp_path: Path) -> None:
    with holder(tmp_path / "lock", os.getpid()) as other:
        with (
            pytest.raises(EngineError, match=rf"process {os.getpid()}, `corral up dev`"),
            hold_lock(tmp_path / "lock", "base dev", wait=False, write=print),
        ):
            pass
        other.communicate()


def test_a_holder_is_named_after_a_command_with_a_longer_record(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    file.write_text(json.dumps({"pid": 1, "since": NOW.isoformat(), "command": "corral up dev " + "-" * 200}))
    with (
        hold_lock(file, "base dev", wait=False, write=pytest.fail),
        pytest.raises(EngineError, match=rf"another corral \(process {os.getpid()}, "),
        hold_lock(file, "base dev", wait=False, write=pytest.fail),
    ):
        pass


def wait_messages(file: Path, pid: int, *, wait: bool) -> list[str]:
    """What is printed until the lock of this process is free; it is released after the first line."""
    messages: list[str] = []
    with holder(file, pid) as other:
        assert other.stdin is not None

        def wait_message(text: str) -> None:
            messages.append(text)
            other.stdin.close()  # type: ignore[union-attr]

        with hold_lock(file, "base dev", wait=wait, write=wait_message):
            pass
        assert other.stdout is not None
        other.stdout.close()
    return messages


def test_lock_of_a_running_command_is_awaited_with_wait(tmp_path: Path) -> None:
    (message,) = wait_messages(tmp_path / "lock", os.getpid(), wait=True)
    assert re.sub(r"since .*?\)", "since ...)", message) == (
        f"another corral (process {os.getpid()}, `corral up dev`, since ...) is working on base dev; waiting for it"
    )


def test_lock_of_a_killed_commands_engine_is_awaited(tmp_path: Path) -> None:
    assert wait_messages(tmp_path / "lock", dead_pid(), wait=False) == [
        "the engine of an interrupted corral is still finishing its work on base dev; waiting for it"
    ]


def test_lock_error_of_pulumi_names_the_holders() -> None:
    text = (
        "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the"
        " lock file with `pulumi cancel`.\n  file:///s/x.json: created by me@there (pid 77) at 2026-03-01T10:00:00Z"
    )
    assert lock_holders_in_error(text) == (
        LockHolder(pid=77, since=datetime(2026, 3, 1, 10, tzinfo=UTC), host="there", user="me"),
    )


def test_other_errors_have_no_lock_holder() -> None:
    assert lock_holders_in_error("error: no stack named 'dev' found") == ()


@pytest.mark.parametrize(
    ("holder", "alive"),
    [
        (LockHolder(pid=os.getpid(), since=NOW, host=socket.gethostname()), True),
        (LockHolder(pid=os.getpid(), since=NOW - timedelta(days=900), host=socket.gethostname()), False),
        (LockHolder(pid=dead_pid(), since=NOW, host=socket.gethostname()), False),
        (LockHolder(pid=dead_pid(), since=NOW, host="another-machine"), True),
    ],
    ids=["this process", "a reused process id", "a dead process", "elsewhere"],
)
def test_holder_is_alive_if_its_process_started_then(holder: LockHolder, alive: bool) -> None:
    assert holder.is_alive is alive


def test_lock_file_of_pulumi_is_parsed(tmp_path: Path) -> None:
    record = {"pid": 5, "username": "me", "hostname": "here", "timestamp": "2026-03-01T10:00:00.5Z"}
    (tmp_path / "a.json").write_text(json.dumps(record))
    (tmp_path / "b.json").write_text("")
    assert [holder.pid for holder in file_lock_holders(tmp_path)] == [5]


def test_locks_of_a_file_backend_are_next_to_the_states() -> None:
    assert state_directory("file:///var/states", {}) == Path("/var/states/.corral")


def test_locks_of_other_backends_are_in_the_users_state_directory() -> None:
    assert state_directory("s3://states", {"XDG_STATE_HOME": "/s"}).parent == Path("/s/corral/stacks")
