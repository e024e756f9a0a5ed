"""How a node follows the cluster's people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from corral.agent.commands import node
from corral.agent.host.base import HostError
from corral.agent.users.accounts import AccountAction, AccountChange
from corral.agent.users.followed_users import FollowedUsers
from corral.agent.users.sync import require_done, sync_accounts
from corral.model.users import AccessPlan, UserPlan, users_conf

ADA = AccessPlan(users=(UserPlan(name="ada", uid=2001),))


def test_a_change_is_acted_upon_once(tmp_path: Path) -> None:
    acted: list[AccessPlan] = []
    followed = FollowedUsers(act=acted.append, file=tmp_path / "users.conf")
    followed.poll()  # slurmd has not received it yet
    for access in (ADA, ADA, AccessPlan()):
        (tmp_path / "users.conf").write_text(users_conf(access))
        followed.poll()
    assert acted == [ADA, AccessPlan()]


def test_half_a_file_removes_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    acted: list[AccessPlan] = []
    (tmp_path / "users.conf").write_text("".join(users_conf(ADA).splitlines(keepends=True)[:-1]))
    FollowedUsers(act=acted.append, file=tmp_path / "users.conf").poll()
    assert acted == []
    assert "users.conf is incomplete" in caplog.text


@dataclass
class LockedHost:
    """A node on which another program holds /etc/passwd: no command that changes an account succeeds."""

    root: Path
    tried: list[str] = field(default_factory=list)

    def sync_users(self, access: AccessPlan) -> tuple[AccountChange, ...]:
        return sync_accounts(access, self.run, self.root)

    def run(self, command: Sequence[str]) -> str:
        self.tried.append(command[0])
        raise HostError("cannot lock /etc/passwd")


def test_an_account_that_a_node_could_not_lock_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("ada:x:2001:2001::/home/ada:/bin/bash\n")
    (tmp_path / "etc/group").write_text("corral-users:x:999:ada\n")
    (tmp_path / "users.conf").write_text(users_conf(AccessPlan()))
    host = LockedHost(tmp_path)
    followed = FollowedUsers(act=partial(node._sync, host, "fs-1"), file=tmp_path / "users.conf")  # type: ignore[arg-type]
    followed.poll()
    followed.poll()
    assert host.tried == ["usermod", "usermod"]


def test_somebody_who_is_refused_by_their_id_is_no_failure() -> None:
    require_done([AccountChange(action=AccountAction.REFUSE, name="eve", reason="its id 0 is that of the user root")])


def test_a_failure_is_repeated(tmp_path: Path) -> None:
    tried = []

    def fail(access: AccessPlan) -> None:
        tried.append(access)
        raise HostError("cannot lock /etc/passwd")

    (tmp_path / "users.conf").write_text(users_conf(ADA))
    followed = FollowedUsers(act=fail, file=tmp_path / "users.conf")
    followed.poll()
    followed.poll()
    assert tried == [ADA, ADA]
