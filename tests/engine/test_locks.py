"""Locks: two corrals, a killed corral whose engine still works, and what Pulumi tells of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from corral.engine.errors import EngineError
from corral.engine.locks import Holder, backend_holders, file_holders, held, state_directory

NOW = datetime.now(UTC)
# Holds the lock until its input ends; its record names another process.
KEEPER = """
import fcntl, os, sys
handle = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(handle, fcntl.LOCK_EX)
os.pwrite(handle, sys.argv[2].encode(), 0)
print("held", flush=True)
sys.stdin.read()
"""


def keeper(file: Path, pid: int) -> subprocess.Popen[str]:
    record = json.dumps({"pid": pid, "since": NOW.isoformat(), "command": "corral up dev"})
    command = [sys.executable, "-c", KEEPER, str(file), record]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_living_command_is_not_waited_for_unless_asked(tmp_path: Path) -> None:
    with keeper(tmp_path / "lock", os.getpid()) as other:
        with (
            pytest.raises(EngineError, match=rf"process {os.getpid()}, `corral up dev`"),
            held(tmp_path / "lock", "base dev", wait=False, say=print),
        ):
            pass
        other.communicate()


def test_the_engine_of_a_killed_command_is_waited_for(tmp_path: Path) -> None:
    said: list[str] = []
    with keeper(tmp_path / "lock", dead_pid()) as other:
        assert other.stdin is not None

        def hear(text: str) -> None:
            said.append(text)
            other.stdin.close()  # type: ignore[union-attr]

        with held(tmp_path / "lock", "base dev", wait=False, say=hear):
            pass
        assert other.stdout is not None
        other.stdout.close()
    assert said == ["the engine of an interrupted corral is still finishing what it began on base dev; waiting for it"]


def test_pulumis_complaint_names_the_holders() -> None:
    text = (
        "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the"
        " lock file with `pulumi cancel`.\n  file:///s/x.json: created by me@there (pid 77) at 2026-03-01T10:00:00Z"
    )
    assert backend_holders(text) == (
        Holder(pid=77, since=datetime(2026, 3, 1, 10, tzinfo=UTC), host="there", user="me"),
    )


def test_another_complaint_names_nobody() -> None:
    assert backend_holders("error: no stack named 'dev' found") == ()


@pytest.mark.parametrize(
    ("holder", "lives"),
    [
        (Holder(pid=os.getpid(), since=NOW, host=socket.gethostname()), True),
        (Holder(pid=os.getpid(), since=NOW - timedelta(days=900), host=socket.gethostname()), False),
        (Holder(pid=dead_pid(), since=NOW, host=socket.gethostname()), False),
        (Holder(pid=dead_pid(), since=NOW, host="another-machine"), True),
    ],
    ids=["this process", "a number used again", "a dead process", "elsewhere"],
)
def test_who_lives(holder: Holder, lives: bool) -> None:
    assert holder.lives is lives


def test_a_lock_file_of_pulumi_is_read(tmp_path: Path) -> None:
    record = {"pid": 5, "username": "me", "hostname": "here", "timestamp": "2026-03-01T10:00:00.5Z"}
    (tmp_path / "a.json").write_text(json.dumps(record))
    (tmp_path / "b.json").write_text("")
    assert [holder.pid for holder in file_holders(tmp_path)] == [5]


def test_locks_lie_beside_states_that_are_files() -> None:
    assert state_directory("file:///var/states", {}) == Path("/var/states/.corral")


def test_locks_of_other_backends_lie_with_the_user() -> None:
    assert state_directory("s3://states", {"XDG_STATE_HOME": "/s"}).parent == Path("/s/corral/stacks")
