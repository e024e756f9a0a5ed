"""The commands for the accounts of a machine, and what the real useradd makes of them."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from corral.agent.users.accounts import AccountAction, AccountChange, AccountFiles, account_changes
from corral.model.users import ADMIN_HOMES, AccessPlan, GroupPlan, UserPlan

PASSWD = (
    "root:x:0:0:root:/root:/bin/bash\nadmin:x:1000:1000:Debian:/home/admin:/bin/bash\nslurm:x:64030:64030::/:/bin/sh\n"
)
GROUP = "root:x:0:\nadmin:x:1000:\nslurm:x:64030:\nrender:x:992:\n"
SHADOW = "root:*:20000:0:99999:7:::\nadmin:!:20000:0:99999:7:::\nslurm:!::::::: \n".replace(" ", "")
EMPTY = AccountFiles(passwd=PASSWD, group=GROUP, shadow=SHADOW)
ADA = UserPlan(name="ada", uid=2001, groups=("vision",))
ACCESS = AccessPlan(users=(ADA,), groups=(GroupPlan(name="vision", gid=2100),))


def with_ada(*, locked: bool = False, groups: tuple[str, ...] = ("corral-users", "vision")) -> AccountFiles:
    """A machine that has ada's account."""
    members = "".join(
        f"{name}:x:{gid}:ada\n" for name, gid in (("corral-users", 999), ("vision", 2100)) if name in groups
    )
    return AccountFiles(
        passwd=f"{PASSWD}ada:x:2001:2001::/home/ada:/bin/bash\n",
        group=f"{GROUP}ada:x:2001:\n{members}",
        shadow=f"{SHADOW}ada:*:20000:0:99999:7::{'1' if locked else ''}:\n",
    )


def commands(access: AccessPlan, files: AccountFiles) -> list[str]:
    """The commands of all changes, a line each."""
    return [" ".join(command) for change in account_changes(access, files) for command in change.commands]


def test_a_new_person_gets_a_group_an_id_and_no_password() -> None:
    assert commands(ACCESS, EMPTY) == [
        "groupadd --system corral-users",
        "groupadd --gid 2100 vision",
        "groupadd --gid 2001 ada",
        "useradd --no-log-init --uid 2001 --gid 2001 --groups corral-users,vision --password * --shell /bin/bash"
        " --no-create-home --home-dir /home/ada ada",
    ]


def test_who_is_there_stays_as_they_are() -> None:
    assert commands(ACCESS, with_ada()) == []


def test_a_cluster_without_people_changes_nothing() -> None:
    assert commands(AccessPlan(), EMPTY) == []


def test_who_is_removed_is_locked_and_leaves_all_groups() -> None:
    (change,) = account_changes(AccessPlan(), with_ada())
    assert [" ".join(command) for command in (*change.commands, *change.afterwards)] == [
        "usermod --expiredate 2 --shell /usr/sbin/nologin --groups corral-users ada",
        "usermod --expiredate 1 ada",
    ]


def test_who_is_locked_stays_locked() -> None:
    assert commands(AccessPlan(), with_ada(locked=True, groups=("corral-users",))) == []


def test_who_returns_is_added_with_the_same_id() -> None:
    (change,) = [one for one in account_changes(ACCESS, with_ada(locked=True)) if one.name == "ada"]
    assert change.action is AccountAction.ADD
    assert [" ".join(command) for command in change.commands] == [
        "usermod --uid 2001 --gid 2001 --groups corral-users,vision --shell /bin/bash --expiredate  ada"
    ]


def test_an_administrator_of_a_head_has_a_home_that_nodes_do_not_write() -> None:
    access = AccessPlan(users=(replace(ADA, groups=(), admin=True),))
    found = [command for change in account_changes(access, EMPTY, ADMIN_HOMES) for command in change.commands]
    assert found[-1][-3:] == ("--home-dir", "/var/lib/corral/homes/ada", "ada")


def test_who_becomes_an_administrator_of_a_head_moves_there() -> None:
    access = replace(ACCESS, users=(replace(ADA, admin=True),))
    (change,) = account_changes(access, with_ada(), ADMIN_HOMES)
    assert change.commands[0][-3:] == ("--home", "/var/lib/corral/homes/ada", "ada")
    assert change.moves_home


def test_others_do_not_move() -> None:
    assert list(account_changes(ACCESS, with_ada(), ADMIN_HOMES)) == []


def test_another_group_is_a_change() -> None:
    group, user = account_changes(ACCESS, with_ada(groups=("corral-users",)))
    assert (group.name, group.action) == ("vision", AccountAction.ADD)
    assert (user.name, user.action) == ("ada", AccountAction.CHANGE)


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        (UserPlan(name="slurm", uid=2001), "the machine's system has a user of this name"),
        (UserPlan(name="eve", uid=1000), "its id 1000 is that of the user admin on this machine"),
        (UserPlan(name="eve", uid=992), "its id 992 is that of the group render on this machine"),
    ],
)
def test_nobody_becomes_a_user_of_the_system(user: UserPlan, reason: str) -> None:
    assert list(account_changes(AccessPlan(users=(user,)), EMPTY))[1:] == [
        AccountChange(action=AccountAction.REFUSE, name=user.name, reason=reason)
    ]


def test_a_refused_group_keeps_nobody_out() -> None:
    access = replace(ACCESS, groups=(GroupPlan(name="vision", gid=992),))
    found = list(account_changes(access, EMPTY))
    assert found[1].reason == "its id 992 is that of the group render on this machine"
    assert "--groups corral-users " in " ".join(found[2].commands[-1]) + " "


def test_the_systems_own_users_are_never_locked() -> None:
    assert not [change for change in account_changes(AccessPlan(), EMPTY) if change.action is AccountAction.LOCK]


def test_useradd_makes_what_is_expected(tmp_path: Path) -> None:
    """Add, remove and return with the system's own programs, in a directory that is mounted as /etc."""
    (tmp_path / "etc").mkdir()
    shutil.copy("/etc/login.defs", tmp_path / "etc")
    shutil.copytree("/etc/pam.d", tmp_path / "etc/pam.d")
    for name, text in (("passwd", PASSWD), ("group", GROUP), ("shadow", SHADOW)):
        (tmp_path / "etc" / name).write_text(text)
    for access, locked in ((ACCESS, ""), (AccessPlan(), "1"), (ACCESS, "")):
        for change in account_changes(access, files_in(tmp_path)):
            for command in (*change.commands, *change.afterwards):
                mounted = ("sh", "-c", 'mount --bind "$0" /etc && exec "$@"', str(tmp_path / "etc"), *command)
                subprocess.run(["unshare", "-rm", *mounted], check=True, capture_output=True)
        (shadow,) = [line for line in files_in(tmp_path).shadow.splitlines() if line.startswith("ada:")]
        assert shadow.split(":")[1] == "*"
        assert shadow.split(":")[7] == locked
        assert not list(account_changes(access, files_in(tmp_path)))
    assert "ada:x:2001:2001::/home/ada:/bin/bash" in files_in(tmp_path).passwd.splitlines()


def files_in(root: Path) -> AccountFiles:
    """The files of a directory that stands for /."""
    passwd, group, shadow = ((root / "etc" / name).read_text() for name in ("passwd", "group", "shadow"))
    return AccountFiles(passwd=passwd, group=group, shadow=shadow)
