"""Accounts and keys of a machine, the processes of removed people, and the events."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from corral.agent.events import EventLog
from corral.agent.host.base import HostError
from corral.agent.users.accounts import AccountAction
from corral.agent.users.sync import end_processes, log_changes, make_homes, remove_keys, sync_accounts
from corral.model.users import ADMIN_HOMES, AccessPlan, UserPlan

ADA = UserPlan(name="ada", uid=2001)
ACCESS = AccessPlan(users=(ADA,))


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine with root alone."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    (tmp_path / "etc/group").write_text("root:x:0:\n")
    (tmp_path / "etc/shadow").write_text("root:*:20000:0:99999:7:::\n")
    return tmp_path


def test_a_command_that_fails_refuses_one_person_and_no_other(machine: Path) -> None:
    ran: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> str:
        ran.append(command)
        if command[-1] == "ada" and command[0] == "useradd":
            raise HostError("useradd failed with 10: cannot lock /etc/group")
        return ""

    access = AccessPlan(users=(ADA, UserPlan(name="bob", uid=2002)))
    changes = sync_accounts(access, run, machine)
    assert [(change.name, change.action) for change in changes] == [
        ("corral-users", AccountAction.ADD),
        ("ada", AccountAction.REFUSE),
        ("bob", AccountAction.ADD),
    ]
    assert changes[1].reason == "useradd failed with 10: cannot lock /etc/group"
    assert ran[-1][-1] == "bob"


def test_a_session_ends_before_its_home_moves(machine: Path) -> None:
    (machine / "proc").symlink_to("/proc")
    with (machine / "etc/group").open("a") as group:
        group.write("corral-users:x:999:ada\nada:x:2001:\n")
    with (machine / "etc/passwd").open("a") as passwd:
        passwd.write("ada:x:2001:2001::/home/ada:/bin/bash\n")
    ended: list[int] = []
    with person_with_a_process(2001) as sleeping:
        access = AccessPlan(users=(UserPlan(name="ada", uid=2001, admin=True),))

        def run(command: Sequence[str]) -> str:
            ended.append(sleeping.wait(10))
            return ""

        (change,) = sync_accounts(access, run, machine, admin_homes=ADMIN_HOMES)
    assert (change.action, ended) == (AccountAction.CHANGE, [-signal.SIGKILL])


def test_events_name_who_was_added_and_who_was_refused(machine: Path) -> None:
    access = AccessPlan(users=(ADA, UserPlan(name="eve", uid=0)))
    log_changes(sync_accounts(access, lambda _: "", machine), EventLog(machine / "events.jsonl"))
    lines = [json.loads(line) for line in (machine / "events.jsonl").read_text().splitlines()]
    assert [(line["event"], line["text"], line["user"]) for line in lines] == [
        ("user-added", "ada, uid 2001", "ada"),
        ("user-refused", "eve: its id 0 is that of the user root on this machine", "eve"),
    ]


def test_only_keys_of_people_who_are_there_stay(tmp_path: Path) -> None:
    keys = tmp_path / "etc/ssh/corral_users"
    keys.mkdir(parents=True)
    for name in ("ada", "bob"):
        (keys / name).write_text("ssh-ed25519 AAAA\n")
    remove_keys(ACCESS, tmp_path)
    assert [file.name for file in keys.iterdir()] == ["ada"]


def test_a_home_that_fails_keeps_no_other_back() -> None:
    made = []

    def make(name: str) -> None:
        if name == "ada":
            raise HostError("no space left on device")
        made.append(name)

    make_homes(AccessPlan(users=(ADA, UserPlan(name="bob", uid=2002))), make)
    assert made == ["bob"]


def process(
    root: Path, pid: int, *, parent: int, name: str = "bash", cgroup: str = "/user.slice", uid: int | None = None
) -> None:
    """A process in a directory that stands for /proc, of the user who runs the test. `uid`: its real user's."""
    directory = root / str(pid)
    directory.mkdir()
    (directory / "cgroup").write_text(f"0::{cgroup}\n")
    (directory / "comm").write_text(f"{name}\n")
    user = os.getuid() if uid is None else uid
    (directory / "status").write_text(f"Name:\t{name}\nUid:\t{user}\t{os.getuid()}\t{user}\t{user}\n")
    (directory / "stat").write_text(f"{pid} ({name} :) x) S {parent} 1 1\n")


def test_processes_of_jobs_are_left_to_slurm(tmp_path: Path) -> None:
    process(tmp_path, 1, parent=0, name="systemd")
    process(tmp_path, 10, parent=1, name="slurmstepd")
    process(tmp_path, 11, parent=10)
    process(tmp_path, 12, parent=1, cgroup="/system.slice/slurmstepd.scope/job_7/step_0/user/task_0")
    process(tmp_path, 13, parent=1, name="tmux: server")
    killed = set()
    end_processes(os.getuid(), tmp_path, lambda pid, number: killed.add((pid, number)))
    assert killed == {(1, signal.SIGKILL), (13, signal.SIGKILL)}  # all files here are the user's, also those of 1


def test_a_process_that_was_started_meanwhile_ends_too(tmp_path: Path) -> None:
    process(tmp_path, 13, parent=0)
    killed = []

    def kill(pid: int, _: int) -> None:
        killed.append(pid)
        shutil.rmtree(tmp_path / str(pid))
        if pid < 16:
            process(tmp_path, pid + 1, parent=0)

    end_processes(os.getuid(), tmp_path, kill)
    assert killed == [13, 14, 15, 16]


def test_it_is_known_whether_somebody_had_processes_outside_of_jobs(tmp_path: Path) -> None:
    process(tmp_path, 10, parent=0, name="slurmstepd")
    before = end_processes(os.getuid(), tmp_path, lambda pid, _: None)
    process(tmp_path, 13, parent=0)
    assert (before, end_processes(os.getuid(), tmp_path, lambda pid, _: shutil.rmtree(tmp_path / str(pid)))) == (
        False,
        True,
    )


def test_a_person_who_names_a_process_like_slurms_keeps_none(tmp_path: Path) -> None:
    process(tmp_path, 13, parent=0, name="slurmstepd", uid=2001)
    process(tmp_path, 14, parent=13)
    killed = set()
    end_processes(os.getuid(), tmp_path, lambda pid, _: killed.add(pid))
    assert killed == {13, 14}


@pytest.mark.parametrize("name", ["slurmstepd\x0bUid:", "slurmstepd\u2028Uid:\t0", "slurmstepd) S 0"])
def test_no_name_of_a_process_passes_for_the_kernels_own_lines(tmp_path: Path, name: str) -> None:
    process(tmp_path, 13, parent=0, name=name, uid=2001)
    killed = set()
    end_processes(os.getuid(), tmp_path, lambda pid, _: killed.add(pid))
    assert killed == {13}


def test_no_control_group_of_a_persons_passes_for_another_line(tmp_path: Path) -> None:
    process(tmp_path, 13, parent=0, cgroup="/user.slice/user-2001.slice/x\u2028a:b:/job_7")
    process(tmp_path, 14, parent=0, cgroup="/user.slice/user-2001.slice/x\x0ba:b:/job_7")
    killed = set()
    end_processes(os.getuid(), tmp_path, lambda pid, _: killed.add(pid))
    assert killed == {13, 14}


def test_a_person_who_names_a_control_group_like_a_jobs_keeps_no_process(tmp_path: Path) -> None:
    process(tmp_path, 13, parent=0, cgroup="/user.slice/user-2001.slice/user@2001.service/app.slice/job_7.service")
    killed = set()
    end_processes(os.getuid(), tmp_path, lambda pid, _: killed.add(pid))
    assert killed == {13}


def test_a_real_process_that_names_itself_like_slurms_and_a_line_of_its_status_ends() -> None:
    naming = (
        "import os, time; open('/proc/self/comm', 'w').write('slurmstepd\\x0bUid:'); os.setuid(2001); time.sleep(60)"
    )
    with person_with_a_process(2001, sys.executable, "-c", naming) as named:
        end_processes(2001)
        assert named.wait(10) == -signal.SIGKILL


def test_a_real_process_of_a_person_ends() -> None:
    with person_with_a_process(2001) as sleeping:
        end_processes(2001)
        assert sleeping.wait(10) == -signal.SIGKILL


@contextmanager
def person_with_a_process(uid: int, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of a user with this id, who needs no account. `command`: one that takes on the id by itself."""
    with subprocess.Popen(command or ("setpriv", f"--reuid={uid}", "--clear-groups", "sleep", "60")) as sleeping:
        until = time.monotonic() + 10
        while Path(f"/proc/{sleeping.pid}").stat().st_uid != uid and time.monotonic() < until:
            time.sleep(0.01)
        yield sleeping
