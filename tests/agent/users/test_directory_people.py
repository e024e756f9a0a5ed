"""The people of the directory on a head: homes, accounts of Slurm, and what happens to who has left."""

from __future__ import annotations

import json
import pwd
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from corral.agent.events import EventLog
from corral.agent.host.base import HostError
from corral.agent.users.directory_people import DirectoryPeopleTask, people_of
from corral.agent.users.sync import AccountsError
from corral.model.cluster import ClusterPlan, LoginPlan
from corral.model.users import AccessPlan, RemovedJobs
from render.plans import DIRECTORY, LOGIN, dev

ADA, BOB = ("ada", 20001), ("bob", 20002)
JOBS = "20001 RUNNING 1\n20001 PENDING 2\n20002 PENDING 3\n"


def entry(name: str, uid: int, home: str = "") -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "*", uid, 30001, "", home or f"/home/{name}", "/bin/bash"))


@dataclass
class Head:
    """A head whose SSSD lists `listed`, and finds `known` by name."""

    root: Path
    listed: list[tuple[str, int]]
    known: set[str]
    access: AccessPlan = field(default_factory=lambda: AccessPlan(directory=DIRECTORY))
    did: list[str] = field(default_factory=list)
    failing: str = ""
    login: LoginPlan | None = None

    def task(self) -> DirectoryPeopleTask:
        (self.root / "etc").mkdir(exist_ok=True)
        (self.root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nold:x:20009:20009::/home/old:/bin/sh\n")
        return DirectoryPeopleTask(
            plan=self.plan,
            run=self.run,
            make_home=self.make_home,
            add_accounts=lambda _: self.did.append("accounts"),
            journal=EventLog(self.root / "events.jsonl"),
            passwd=lambda: [entry(*one) for one in (*self.listed, ("old", 20009))],
            is_known=lambda name: name in self.known,
            end=lambda uid: self.did.append(f"end {uid}"),
            root=self.root,
        )

    def plan(self) -> ClusterPlan:
        return replace(dev(), access=self.access, login=self.login)

    def run(self, command: Sequence[str]) -> str:
        if command[0] == "scancel":
            self.did.append(" ".join(command))
        return JOBS

    def make_home(self, name: str) -> None:
        if name == self.failing:
            raise HostError("no space")
        (self.root / "home" / name).mkdir(parents=True, exist_ok=True)
        self.did.append(f"home {name}")

    def events(self) -> list[str]:
        file = self.root / "events.jsonl"
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [f"{line['event']} {line['user']}" for line in lines]


@pytest.fixture
def head(tmp_path: Path) -> Head:
    return Head(tmp_path, [ADA, BOB], {"ada", "bob"})


def test_who_is_new_has_a_home_and_an_account(head: Head) -> None:
    head.task()()
    assert (head.did, head.events()) == (["home ada", "home bob", "accounts"], ["user-added ada", "user-added bob"])


def test_who_is_known_costs_nothing(head: Head) -> None:
    head.task()()
    head.did.clear()
    head.task()()
    assert head.did == []


def test_on_a_head_that_is_left_to_administrators_a_shared_home_is_not_enough(head: Head) -> None:
    head.login = LOGIN
    head.task()()
    (head.root / "var/lib/corral/homes/bob").mkdir(parents=True)
    head.did.clear()
    head.task()()
    assert head.did == ["home ada"]


def test_a_home_that_fails_keeps_nobody_else_from_theirs(head: Head) -> None:
    head.failing = "ada"
    head.task()()
    assert head.did == ["home bob", "accounts"]


@pytest.mark.parametrize(
    ("kind", "cancelled"), [(RemovedJobs.FINISH, "scancel 2"), (RemovedJobs.CANCEL, "scancel 1 2")]
)
def test_who_is_gone_twice_in_a_row_loses_processes_and_jobs(head: Head, kind: RemovedJobs, cancelled: str) -> None:
    head.access = replace(head.access, removed_jobs=kind)
    task = head.task()
    task()
    head.did.clear()
    head.known = {"bob"}
    task()
    assert head.did == []
    task()
    assert (head.did, head.events()[2:]) == (["end 20001", cancelled], ["user-removed ada"])


def test_who_keeps_a_process_is_tried_again_and_keeps_nobody_elses(head: Head) -> None:
    head.listed.append(("carl", 20003))
    head.known.add("carl")
    task = head.task()
    task()
    head.did.clear()
    head.known = {"carl"}
    clinging = iter((True, False))

    def end(uid: int) -> None:
        head.did.append(f"end {uid}")
        if uid == 20001 and next(clinging):
            raise AccountsError("13 remains")

    task.end = end
    task()
    with pytest.raises(AccountsError, match="ada: 13 remains"):
        task()
    assert (head.did, head.events()[3:]) == (
        ["end 20001", "scancel 2", "end 20002", "scancel 3"],
        ["user-removed bob"],
    )
    task()
    assert (head.did[4:], head.events()[4:]) == (["end 20001", "scancel 2"], ["user-removed ada"])


def test_who_is_missing_once_is_not_gone(head: Head) -> None:
    task = head.task()
    for known in ({"ada", "bob"}, {"bob"}, {"ada", "bob"}, {"bob"}):
        head.known = known
        task()
    assert head.events() == ["user-added ada", "user-added bob"]


def test_while_sssd_does_not_answer_nobody_is_gone(head: Head) -> None:
    task = head.task()
    task()
    head.listed, head.known = [], set()
    task()
    task()
    assert head.events() == ["user-added ada", "user-added bob"]


def test_a_head_that_replaces_another_takes_nobody_for_gone_whom_it_never_saw(head: Head) -> None:
    head.known, task = {"bob"}, head.task()
    task()
    task()
    assert head.events() == ["user-added bob"]


def test_who_returns_is_new(head: Head) -> None:
    task = head.task()
    for known in ({"ada", "bob"}, {"bob"}, {"bob"}, {"ada", "bob"}):
        head.known = known
        task()
    assert head.events() == ["user-added ada", "user-added bob", "user-removed ada", "user-added ada"]


def test_without_a_directory_nobody_is_looked_up(head: Head) -> None:
    head.access = AccessPlan()
    head.task()()
    assert head.did == []


@pytest.mark.parametrize(
    ("one", "is_person"),
    [
        (entry("ada", 20001), True),
        (entry("ada", 1999), False),
        (entry("ada", 60000), False),
        (entry("old", 20009), False),
        (entry("ada", 20001, "/root"), False),
        (entry("..", 20001), False),
        (entry("a/b", 20001), False),
    ],
)
def test_whom_a_head_takes_for_a_person_of_the_directory(one: pwd.struct_passwd, is_person: bool) -> None:
    assert bool(people_of(DIRECTORY, [one], {"root", "old"})) is is_person
