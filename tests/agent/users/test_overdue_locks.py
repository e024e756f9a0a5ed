"""A head locks who was removed although an apply could not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from corral.agent.events import EventLog
from corral.agent.host.base import HostError
from corral.agent.process_lock import exclusive
from corral.agent.users.accounts import AccountChange
from corral.agent.users.overdue_locks import OverdueLocksTask
from corral.agent.users.sync import sync_accounts
from corral.model.users import HOMES, AccessPlan, UserPlan
from render.plans import dev

EVE = UserPlan(name="eve", uid=0)  # who is refused for her id, whenever accounts change


@dataclass
class BusyHead:
    """A head on which other programs hold /etc/passwd at first, and on which ada was removed. `busy`: how often."""

    root: Path
    busy: int = 0
    tried: list[str] = field(default_factory=list)

    def sync_users(self, access: AccessPlan, admin_homes: str = HOMES) -> tuple[AccountChange, ...]:
        return sync_accounts(access, self.run, self.root, admin_homes=admin_homes)

    def run(self, command: Sequence[str]) -> str:
        self.tried.append(command[-1])
        self.busy -= 1
        if self.busy >= 0:
            raise HostError("cannot lock /etc/passwd")
        (self.root / "etc/shadow").write_text("ada:*:20000:0:99999:7::1:\n")
        return ""


@pytest.fixture
def head(tmp_path: Path) -> BusyHead:
    for directory in ("etc", "proc"):
        (tmp_path / directory).mkdir()
    (tmp_path / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nada:x:2001:2001::/home/ada:/bin/bash\n")
    (tmp_path / "etc/group").write_text("root:x:0:\ncorral-users:x:999:ada\n")
    (tmp_path / "etc/shadow").write_text("ada:*:20000:0:99999:7:::\n")
    return BusyHead(tmp_path)


def task(head: BusyHead, *users: UserPlan) -> OverdueLocksTask:
    plan = replace(dev(), access=AccessPlan(users=users))
    journal, applies = EventLog(head.root / "events.jsonl"), head.root / "run/apply.lock"
    return OverdueLocksTask(
        plan=lambda: plan, sync_users=head.sync_users, journal=journal, applies=applies, root=head.root
    )


def events(head: BusyHead) -> list[tuple[str, str]]:
    file = head.root / "events.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [(row["event"], row["text"]) for row in rows]


def test_a_lock_that_failed_is_repeated_until_it_is_done(head: BusyHead) -> None:
    head.busy = 2
    locks = task(head)
    for _ in range(4):
        locks()
    assert head.tried == ["ada", "ada", "ada"]


def test_only_the_lock_is_an_event(head: BusyHead) -> None:
    head.busy = 1
    locks = task(head, EVE)
    locks(), locks()
    assert events(head) == [("user-removed", "ada, uid 2001")]


def test_who_is_there_or_is_refused_is_left_to_an_apply(head: BusyHead) -> None:
    task(head, UserPlan(name="ada", uid=2001, groups=("vision",)), EVE)()
    assert head.tried == []


def test_an_apply_that_runs_locks_by_itself(head: BusyHead) -> None:
    locks = task(head)
    locks.applies.parent.mkdir()
    with exclusive(locks.applies):
        locks()
    assert head.tried == []
