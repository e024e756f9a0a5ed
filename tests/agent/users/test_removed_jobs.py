"""What happens on a head to people who were removed, after an apply: their jobs, and a lock that failed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from corral.agent.events import EventLog
from corral.agent.host.base import HostError
from corral.agent.users.removed_jobs import RemovedJobsTask, jobs_to_cancel, known_people, remember_people
from corral.agent.users.sync import lock_removed
from corral.model.users import AccessPlan, RemovedJobs, UserPlan
from render.plans import DIRECTORY

ADA, BOB = UserPlan(name="ada", uid=2001), UserPlan(name="bob", uid=2002)
JOBS = "2001 RUNNING 1\n2002 RUNNING 2\n2002 PENDING 3_1\n2002 PENDING 3_2\n1000 PENDING 4\n2001 PENDING 5\n"


@pytest.mark.parametrize(
    ("jobs", "removed_jobs", "ids"),
    [
        (JOBS, RemovedJobs.FINISH, ("3_1", "3_2")),
        (JOBS, RemovedJobs.CANCEL, ("2", "3_1", "3_2")),
        ("2002 RUNNING 2\n", RemovedJobs.FINISH, ()),
        ("1000 RUNNING 4\n", RemovedJobs.CANCEL, ()),
        ("", RemovedJobs.CANCEL, ()),
    ],
)
def test_which_jobs_end(jobs: str, removed_jobs: RemovedJobs, ids: tuple[str, ...]) -> None:
    assert jobs_to_cancel(jobs, {BOB.uid}, removed_jobs) == ids


@pytest.mark.parametrize(
    ("removed_jobs", "scancel"),
    [
        (RemovedJobs.FINISH, ("scancel", "3_1", "3_2")),
        (RemovedJobs.CANCEL, ("scancel", "2", "3_1", "3_2")),
    ],
)
def test_a_head_that_never_had_the_account_ends_the_jobs(
    tmp_path: Path, removed_jobs: RemovedJobs, scancel: tuple[str, ...]
) -> None:
    remember_people(AccessPlan(users=(ADA, BOB)), tmp_path)
    ran: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> str:
        ran.append(command)
        return JOBS

    access = AccessPlan(users=(ADA,), removed_jobs=removed_jobs)
    RemovedJobsTask(access=lambda: access, run=run, lock=print, root=tmp_path)()
    assert ran[1:] == [scancel]


def test_jobs_are_queried_only_if_somebody_was_removed(tmp_path: Path) -> None:
    remember_people(AccessPlan(users=(ADA, BOB)), tmp_path)
    ran: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> str:
        ran.append(command)
        return ""

    RemovedJobsTask(access=lambda: AccessPlan(users=(ADA, BOB)), run=run, lock=pytest.fail, root=tmp_path)()
    assert ran == []


def test_nobody_is_forgotten(tmp_path: Path) -> None:
    remember_people(AccessPlan(users=(ADA,)), tmp_path)
    remember_people(AccessPlan(users=(BOB,)), tmp_path)
    assert known_people(tmp_path) == {"ada": 2001, "bob": 2002}


def test_a_directory_that_replaces_declared_people_cancels_no_jobs_of_theirs(tmp_path: Path) -> None:
    remember_people(AccessPlan(users=(ADA, BOB)), tmp_path)
    ran: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> str:
        ran.append(command)
        return JOBS

    RemovedJobsTask(access=lambda: AccessPlan(directory=DIRECTORY), run=run, lock=print, root=tmp_path)()
    assert ran == []


@dataclass
class BusyHead:
    """A head on which other programs hold /etc/passwd at first, and on which bob was removed. `busy`: how often."""

    root: Path
    busy: int = 0
    tried: list[str] = field(default_factory=list)

    def run(self, command: Sequence[str]) -> str:
        if command[0] == "squeue":
            return ""
        self.tried.append(" ".join(command))
        self.busy -= 1
        if self.busy >= 0:
            raise HostError("cannot lock /etc/passwd")
        (self.root / "etc/shadow").write_text("bob:*:20000:0:99999:7::1:\n")
        return ""

    def poll(self, access: AccessPlan, times: int) -> list[tuple[str, str]]:
        """The events of some rounds of the task."""
        events = self.root / "events.jsonl"
        lock = partial(lock_removed, run=self.run, journal=EventLog(events), root=self.root)
        task = RemovedJobsTask(access=lambda: access, run=self.run, lock=lock, root=self.root)
        for _ in range(times):
            task()
        rows = [json.loads(line) for line in events.read_text().splitlines()] if events.exists() else []
        return [(row["event"], row["text"]) for row in rows]


@pytest.fixture
def head(tmp_path: Path) -> BusyHead:
    for directory in ("etc", "proc"):
        (tmp_path / directory).mkdir()
    (tmp_path / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nbob:x:2002:2002::/home/bob:/bin/bash\n")
    (tmp_path / "etc/group").write_text("root:x:0:\ncorral-users:x:999:bob\n")
    (tmp_path / "etc/shadow").write_text("bob:*:20000:0:99999:7:::\n")
    remember_people(AccessPlan(users=(BOB,)), tmp_path)
    return BusyHead(tmp_path)


def test_a_lock_that_failed_is_repeated_until_it_is_done(head: BusyHead) -> None:
    head.busy = 2
    head.poll(AccessPlan(), times=4)
    locks = "usermod --expiredate 2 --shell /usr/sbin/nologin --groups corral-users bob"
    assert head.tried == [locks, locks, locks, "usermod --expiredate 1 bob"]


def test_only_the_lock_is_an_event(head: BusyHead) -> None:
    head.busy = 1
    assert head.poll(AccessPlan(), times=2) == [("user-removed", "bob, uid 2002")]


def test_accounts_of_who_is_there_are_left_to_an_apply(head: BusyHead) -> None:
    remember_people(AccessPlan(users=(ADA,)), head.root)
    head.poll(AccessPlan(users=(replace(BOB, groups=("vision",)), UserPlan(name="eve", uid=0))), times=1)
    assert head.tried == []
