"""What people of a directory still run on a login node, or on a node outside of jobs, after they have left."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from corral.agent import background_tasks
from corral.agent.background_tasks import BackgroundTask
from corral.agent.commands import login as login_command
from corral.agent.commands import node as node_command
from corral.agent.events import EventLog
from corral.agent.interruptions import node_watcher
from corral.agent.users.directory_sessions import DirectorySessionsTask
from corral.agent.users.sync import AccountsError
from corral.model.users import AccessPlan
from render.plans import DIRECTORY, dev

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="homes of several users need root: run the tests as root")
ADA, BOB, OLD, SYSTEM = 20001, 20002, 20009, 999
OWN = 30000 + os.getpid() % 20000  # nobody else's on this machine


@dataclass
class LoginNode:
    """A login node with homes of ada, bob and old, of whom the last is a user of the machine; `known`: to SSSD."""

    root: Path
    known: set[int]
    access: AccessPlan = field(default_factory=lambda: AccessPlan(directory=DIRECTORY))
    looked_up: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    has_jobs_alone: bool = False
    clinging: set[int] = field(default_factory=set)

    def start(self, process: int, uid: int) -> None:
        self.own(f"proc/{process}", uid)

    def own(self, path: str, uid: int) -> None:
        (self.root / path).mkdir(parents=True)
        os.chown(self.root / path, uid, uid)

    def look(self, times: int = 1) -> None:
        for _ in range(times):
            self.task()

    def end(self, uid: int) -> bool:
        self.ended.append(uid)
        if uid in self.clinging:
            raise AccountsError("13 remains")
        return not self.has_jobs_alone

    def is_known(self, uid: int) -> bool:
        self.looked_up.append(uid)
        return uid in self.known

    def __post_init__(self) -> None:
        for name, uid in (("ada", ADA), ("bob", BOB), ("old", OLD)):
            self.own(f"home/{name}", uid)
        (self.root / "etc").mkdir()
        (self.root / "etc/passwd").write_text(f"root:x:0:0::/root:/bin/sh\nold:x:{OLD}:{OLD}::/home/old:/bin/sh\n")
        self.start(1, 0)
        self.task = DirectorySessionsTask(
            plan=lambda: replace(dev(), access=self.access),
            journal=EventLog(self.root / "events.jsonl"),
            is_known=self.is_known,
            end=self.end,
            root=self.root,
        )

    def events(self) -> list[str]:
        file = self.root / "events.jsonl"
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [f"{line['event']} {line['user']}" for line in lines]


@pytest.fixture
def node(tmp_path: Path) -> LoginNode:
    return LoginNode(tmp_path, {ADA, BOB})


def test_who_is_missing_twice_in_a_row_loses_their_processes(node: LoginNode) -> None:
    node.start(7, ADA)
    node.known = {BOB}
    node.look(2)
    assert (node.ended, node.events()) == ([ADA], ["user-removed ada"])


def test_who_keeps_a_process_is_tried_again_and_keeps_nobody_elses(node: LoginNode) -> None:
    node.start(7, ADA)
    node.start(8, BOB)
    node.own("home/carl", 20003)
    node.known = {20003}
    node.clinging = {ADA}
    node.look()
    with pytest.raises(AccountsError, match="ada: 13 remains"):
        node.look()
    assert (node.ended, node.events()) == ([ADA, BOB], ["user-removed bob"])
    node.clinging = set()
    node.look()
    assert node.events() == ["user-removed bob", "user-removed ada"]


def test_who_has_only_jobs_left_is_no_event(node: LoginNode) -> None:
    node.start(7, ADA)
    node.known, node.has_jobs_alone = {BOB}, True
    node.look(2)
    assert node.events() == []


def test_who_is_missing_once_keeps_them(node: LoginNode) -> None:
    node.start(7, ADA)
    for known in ({BOB}, {ADA, BOB}, {BOB}, {ADA, BOB}):
        node.known = known
        node.look()
    assert node.ended == []


def test_an_sssd_that_finds_nobody_ends_nothing(node: LoginNode) -> None:
    node.start(7, ADA)
    node.start(8, BOB)
    node.known = set()
    node.look(3)
    assert node.ended == []


def test_a_look_at_which_sssd_finds_nobody_does_not_count(node: LoginNode) -> None:
    node.start(7, ADA)
    for known in (set[int](), {BOB}, {ADA, BOB}):
        node.known = known
        node.look()
    assert node.ended == []


def test_a_process_of_an_id_without_a_home_may_be_of_a_container(node: LoginNode) -> None:
    node.start(7, 20777)
    node.look(2)
    assert node.ended == []


def test_a_user_of_the_machine_is_nobody_of_the_directory(node: LoginNode) -> None:
    node.start(7, OLD)
    node.look(2)
    assert node.ended == []


def test_an_id_outside_the_directorys_is_nobody_of_it(node: LoginNode) -> None:
    node.own("home/lost+found", SYSTEM)
    node.start(7, SYSTEM)
    node.look(2)
    assert node.ended == []


def test_people_who_are_not_here_are_not_looked_up(node: LoginNode) -> None:
    node.start(7, BOB)
    node.look()
    assert node.looked_up == [BOB]


def test_homes_are_not_looked_at_while_everybody_is_known(node: LoginNode) -> None:
    node.start(7, BOB)
    shutil.rmtree(node.root / "home")
    node.look()
    assert node.looked_up == [BOB]


def test_without_a_directory_nobody_is_looked_up(node: LoginNode) -> None:
    node.start(7, ADA)
    node.access = AccessPlan()
    node.look(2)
    assert (node.looked_up, node.ended) == ([], [])


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(("sleep", "60"), user=OWN, group=OWN) as process:
        yield process
        process.kill()


def test_a_real_process_of_who_has_left_is_ended(node: LoginNode, sleeper: subprocess.Popen[bytes]) -> None:
    (node.root / "proc/1").rmdir()
    (node.root / "proc").rmdir()
    (node.root / "proc").symlink_to("/proc")
    node.own("home/carl", OWN)
    node.task = DirectorySessionsTask(
        plan=node.task.plan, journal=node.task.journal, is_known=node.is_known, root=node.root
    )
    node.look(2)
    assert sleeper.wait(10) == -9


class Started(Exception):
    """A daemon has started its background tasks; `args`: their names."""


def stop_at_tasks(tasks: Sequence[BackgroundTask]) -> None:
    raise Started(*(task.name for task in tasks))


@pytest.mark.parametrize(("access", "tasks"), [(AccessPlan(directory=DIRECTORY), ("sessions",)), (AccessPlan(), ())])
def test_a_node_looks_if_its_cluster_has_a_directory(
    access: AccessPlan, tasks: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = replace(dev(), access=access)
    monkeypatch.setattr(node_command, "records_in", lambda: (plan, Mock()))
    for name in ("boot_facts", "host_in", "read_identity", "manifest_version"):
        monkeypatch.setattr(node_command, name, Mock())
    monkeypatch.setattr(background_tasks, "start_tasks", stop_at_tasks)
    monkeypatch.setattr(node_watcher, "watch", lambda *_: stop_at_tasks(()))
    with pytest.raises(Started) as started:
        node_command._watch(Namespace())
    assert started.value.args == tasks


def test_a_login_node_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_command, "records_in", lambda _: (dev(), Mock()))
    for name in ("boot_facts", "host_in", "client", "client_without_retries", "BucketStore", "_name"):
        monkeypatch.setattr(login_command, name, Mock())
    monkeypatch.setattr(login_command, "start_tasks", stop_at_tasks)
    with pytest.raises(Started) as started:
        login_command._watch(Namespace(records=Path("/nowhere"), facts=Path("/nowhere")))
    assert started.value.args == ("logins", "sessions", "events")
