"""Accounts and keys of a machine, the processes of removed people, and the events."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from corral.agent.events import EventLog
from corral.agent.host.base import HostError
from corral.agent.users import sync
from corral.agent.users.accounts import AccountAction
from corral.agent.users.signal_all import SignalError, signal_all
from corral.agent.users.sync import (
    AccountsError,
    end_processes,
    lock_removed,
    log_changes,
    make_homes,
    remove_keys,
    require_done,
    sync_accounts,
)
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


def killed_in(root: Path) -> set[int]:
    """The processes in this directory that are killed with all of the user's outside of jobs."""
    killed = set()

    def kill(pid: int, number: int) -> None:
        assert number == signal.SIGKILL
        killed.add(pid)
        shutil.rmtree(root / str(pid))

    end_processes(os.getuid(), root, kill, pytest.fail)
    return killed


def test_processes_of_jobs_are_left_to_slurm(tmp_path: Path) -> None:
    process(tmp_path, 1, parent=0, name="systemd")
    process(tmp_path, 10, parent=1, name="slurmstepd")
    process(tmp_path, 11, parent=10)
    process(tmp_path, 12, parent=1, cgroup="/system.slice/slurmstepd.scope/job_7/step_0/user/task_0")
    process(tmp_path, 13, parent=1, name="tmux: server")
    assert killed_in(tmp_path) == {1, 13}  # all files here are the user's, also those of 1


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
    after = end_processes(os.getuid(), tmp_path, lambda pid, _: shutil.rmtree(tmp_path / str(pid)))
    assert (before, after) == (False, True)


def test_who_still_has_a_process_at_the_end_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "_BETWEEN_S", 0.0)
    process(tmp_path, 13, parent=0)
    with pytest.raises(AccountsError, match=f"uid {os.getuid()} still has processes: 13"):
        end_processes(os.getuid(), tmp_path, lambda *_: None, lambda *_: None)


@pytest.mark.parametrize(("rest", "is_killed"), [("Z 0", False), ("X 0", False), ("Z 1", False), ("Z 2", True)])
def test_a_process_of_which_one_thread_is_left_is_not_dead(tmp_path: Path, rest: str, is_killed: bool) -> None:
    process(tmp_path, 13, parent=0)
    state, threads = rest.split()
    (tmp_path / "13/stat").write_text(f"13 (bash) {state} {'0 ' * 16}{threads} 0\n")
    assert killed_in(tmp_path) == ({13} if is_killed else set())


def test_a_person_who_names_a_process_like_slurms_keeps_none(tmp_path: Path) -> None:
    process(tmp_path, 13, parent=0, name="slurmstepd", uid=2001)
    process(tmp_path, 14, parent=13)
    assert killed_in(tmp_path) == {13, 14}


@pytest.mark.parametrize("name", ["slurmstepd\x0bUid:", "slurmstepd\u2028Uid:\t0", "slurmstepd) S 0"])
def test_no_name_of_a_process_passes_for_the_kernels_own_lines(tmp_path: Path, name: str) -> None:
    process(tmp_path, 13, parent=0, name=name, uid=2001)
    assert killed_in(tmp_path) == {13}


def test_no_control_group_of_a_persons_passes_for_another_line(tmp_path: Path) -> None:
    process(tmp_path, 13, parent=0, cgroup="/user.slice/user-2001.slice/x\u2028a:b:/job_7")
    process(tmp_path, 14, parent=0, cgroup="/user.slice/user-2001.slice/x\x0ba:b:/job_7")
    assert killed_in(tmp_path) == {13, 14}


def test_a_person_who_names_a_control_group_like_a_jobs_keeps_no_process(tmp_path: Path) -> None:
    process(tmp_path, 13, parent=0, cgroup="/user.slice/user-2001.slice/user@2001.service/app.slice/job_7.service")
    assert killed_in(tmp_path) == {13}


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


PERSON = 30000 + os.getpid() % 20000  # nobody else's on this machine
# One process at any moment, which has ended before a signal to its number comes.
CHAIN = "import os\nwhile True:\n    if os.fork(): os._exit(0)"


@contextmanager
def chain_of_forks(uid: int) -> Iterator[None]:
    with subprocess.Popen(("setpriv", f"--reuid={uid}", "--clear-groups", sys.executable, "-I", "-S", "-c", CHAIN)):
        pass  # the first one has ended
    try:
        yield
    finally:
        signal_all(uid, signal.SIGKILL)


def living(uid: int) -> list[int]:
    """The processes of this user that have not ended."""
    found = subprocess.run(("ps", "-o", "pid=,stat=", "-u", str(uid)), capture_output=True, text=True).stdout
    rows = [line.split() for line in found.splitlines()]
    return [int(pid) for pid, state in rows if state[0] not in "ZX"]


def is_running(uid: int) -> bool:
    """What stands still is found for certain."""
    signal_all(uid, signal.SIGSTOP)
    try:
        return bool(living(uid))
    finally:
        signal_all(uid, signal.SIGCONT)


def test_a_chain_of_forks_ends() -> None:
    with chain_of_forks(PERSON):
        before = is_running(PERSON)
        end_processes(PERSON)
        assert (before, is_running(PERSON)) == (True, False)


@contextmanager
def job_of(uid: int) -> Iterator[int]:
    """A process of this user that descends from root's daemon of a step, as a job's does. Yields its number."""
    step = (
        "import subprocess, sys; open('/proc/self/comm', 'w').write('slurmstepd');"
        "child = subprocess.Popen(['sleep', '60'], user=int(sys.argv[1]), extra_groups=[]);"
        "print(child.pid, flush=True); child.wait()"
    )
    command = (sys.executable, "-I", "-c", step, str(uid))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as daemon:
        assert daemon.stdout
        job = int(daemon.stdout.readline())
        try:
            yield job
        finally:
            daemon.kill()
            with suppress(ProcessLookupError):
                os.kill(job, signal.SIGKILL)


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_job_goes_on_after_a_chain_of_forks_was_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "_FREE_KILLS", 0)
    with job_of(PERSON) as job, chain_of_forks(PERSON):
        end_processes(PERSON)
        assert ([job], "S") == (living(PERSON), state(job))


def test_a_job_that_slurm_had_suspended_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "_FREE_KILLS", 0)
    with job_of(PERSON) as job, chain_of_forks(PERSON):
        os.kill(job, signal.SIGSTOP)
        end_processes(PERSON)
        assert ([job], "T") == (living(PERSON), state(job))


def test_jobs_are_not_stopped_for_who_has_no_chain() -> None:
    with job_of(PERSON), person_with_a_process(PERSON) as sleeping:
        end_processes(PERSON, stop_all=pytest.fail)
        assert sleeping.wait(10) == -signal.SIGKILL


def test_a_signal_to_all_reaches_no_one_elses_process() -> None:
    with person_with_a_process(PERSON) as sleeping, person_with_a_process(PERSON + 1) as other:
        signal_all(PERSON, signal.SIGKILL)
        assert (sleeping.wait(10), other.poll()) == (-signal.SIGKILL, None)
        other.kill()


def test_roots_processes_are_never_signalled() -> None:
    with pytest.raises(SignalError, match="more rights"):
        signal_all(0, 0)


# Ends whatever of its id it finds, and notices who may not be ended.
GUARD = """
import os, time
while True:
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                os.kill(int(entry), 9)
            except OSError:
                pass
"""


def test_a_person_who_kills_whatever_they_may_does_not_end_the_sender() -> None:
    with person_with_a_process(PERSON, "setpriv", f"--reuid={PERSON}", sys.executable, "-I", "-c", GUARD) as guard:
        for _ in range(5):
            signal_all(PERSON, signal.SIGCONT)
        signal_all(PERSON, signal.SIGKILL)
        assert guard.wait(10) == -signal.SIGKILL


@pytest.fixture
def ada(machine: Path) -> Path:
    """A machine with the account of ada, whose id is PERSON."""
    (machine / "proc").symlink_to("/proc")
    with (machine / "etc/group").open("a") as group:
        group.write("corral-users:x:999:ada\n")
    with (machine / "etc/passwd").open("a") as passwd:
        passwd.write(f"ada:x:{PERSON}:{PERSON}::/home/ada:/bin/bash\n")
    return machine


def shadow(machine: Path) -> Callable[[Sequence[str]], str]:
    """Commands of which one changes something: usermod, the expiry alone."""

    def run(command: Sequence[str]) -> str:
        if command[0] != "usermod":
            return ""
        day = command[command.index("--expiredate") + 1]
        (machine / "etc/shadow").write_text(f"root:*:20000:0:99999:7:::\nada:*:20000:0:99999:7::{day}:\n")
        return ""

    return run


def test_who_keeps_a_process_is_tried_again_until_it_has_ended(ada: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter((AccountsError("13 remains"), AccountsError("14 remains"), True))

    def end(*_: object) -> bool:
        if isinstance(look := next(looks), Exception):
            raise look
        return look

    monkeypatch.setattr(sync, "end_processes", end)
    for left in ("13", "14"):
        with pytest.raises(AccountsError, match=f"ada: {left} remains"):
            require_done(sync_accounts(AccessPlan(), shadow(ada), ada))
    for _ in range(2):
        lock_removed(AccessPlan(), shadow(ada), EventLog(ada / "events.jsonl"), ada)
    lines = [json.loads(line) for line in (ada / "events.jsonl").read_text().splitlines()]
    assert [(line["event"], line["user"]) for line in lines] == [("user-removed", "ada")]


def test_who_is_declared_again_while_a_process_remains_is_unlocked(ada: Path) -> None:
    shadow(ada)(("usermod", "--expiredate", "2", "ada"))
    access = AccessPlan(users=(UserPlan(name="ada", uid=PERSON),))
    (change,) = (one for one in sync_accounts(access, shadow(ada), ada) if one.name == "ada")
    assert change.action is AccountAction.ADD
    assert change.commands[-1][-3:-1] == ("--expiredate", "")
