"""How a node follows the cluster's people."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.agent.host.base import HostError
from corral.agent.users.followed_users import FollowedUsers
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
