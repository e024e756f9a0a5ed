"""What happens to the jobs of people who were removed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from corral.agent.users.removed_jobs import RemovedJobsTask, jobs_to_cancel, known_people, remember_people
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

    RemovedJobsTask(access=lambda: AccessPlan(users=(ADA,), removed_jobs=removed_jobs), run=run, root=tmp_path)()
    assert ran[1:] == [scancel]


def test_jobs_are_queried_only_if_somebody_was_removed(tmp_path: Path) -> None:
    remember_people(AccessPlan(users=(ADA, BOB)), tmp_path)
    ran: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> str:
        ran.append(command)
        return ""

    RemovedJobsTask(access=lambda: AccessPlan(users=(ADA, BOB)), run=run, root=tmp_path)()
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

    RemovedJobsTask(access=lambda: AccessPlan(directory=DIRECTORY), run=run, root=tmp_path)()
    assert ran == []
