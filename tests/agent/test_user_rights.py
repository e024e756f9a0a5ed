"""Nobody but root gains root on a machine, and a head accepts no key from a home that nodes may write."""

from __future__ import annotations

import pytest

from corral.agent.user_rights import overriding_sudoers, root_memberships, user_rights
from corral.model.enums import Role

# Of Ubuntu 24.04's cloud image after cloud-init, in part.
PASSWD = """root:x:0:0:root:/root:/bin/bash
syslog:x:103:104::/nonexistent:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
ubuntu:x:1000:1000:Ubuntu:/home/ubuntu:/bin/bash
ann:x:1001:1001::/home/ann:/bin/bash
"""
GROUP = """adm:x:4:syslog,ubuntu
cdrom:x:24:ubuntu
sudo:x:27:ubuntu,ann
lxd:x:105:ubuntu
ubuntu:x:1000:
docker:x:998:
"""
SUDOERS = """Defaults\tenv_reset
root\tALL=(ALL:ALL) ALL
%sudo\tALL=(ALL:ALL) ALL
# See sudoers(5) for more information on "@include" directives:

@includedir /etc/sudoers.d
"""


def test_people_are_in_groups_whose_members_become_root() -> None:
    assert root_memberships(PASSWD, GROUP) == (
        ("ubuntu", "adm"),
        ("ubuntu", "sudo"),
        ("ann", "sudo"),
        ("ubuntu", "lxd"),
    )


def test_a_line_that_is_no_entry_is_skipped() -> None:
    assert root_memberships(PASSWD + "+::::::\n\nbroken\n", "sudo:x:27\n+:::\n" + GROUP)[0] == ("ubuntu", "adm")


def test_corrals_rule_is_the_last_that_sudo_reads() -> None:
    assert overriding_sudoers(SUDOERS, ["90-cloud-init-users", "zzzz-corral", "README"]) == ()


@pytest.mark.parametrize(
    ("sudoers", "names", "later"),
    [
        (SUDOERS + "ann ALL=(ALL) ALL\n", [], ("/etc/sudoers: ann ALL=(ALL) ALL",)),
        (SUDOERS + "#include /etc/sudoers.team\n", [], ("/etc/sudoers: #include /etc/sudoers.team",)),
        (SUDOERS + "#1000 ALL=(ALL) ALL\n", [], ("/etc/sudoers: #1000 ALL=(ALL) ALL",)),
        (SUDOERS, ["zzzzz", "~team"], ("/etc/sudoers.d/zzzzz", "/etc/sudoers.d/~team")),
        ("root ALL=(ALL) ALL\n", [], ("/etc/sudoers: no line '@includedir /etc/sudoers.d'",)),
    ],
)
def test_rules_after_corrals_are_named(sudoers: str, names: list[str], later: tuple[str, ...]) -> None:
    assert overriding_sudoers(sudoers, names) == later


@pytest.mark.parametrize("name", ["zzzzz.dpkg-old", "zzzzz~"])
def test_a_file_that_sudo_skips_does_not_count(name: str) -> None:
    assert overriding_sudoers(SUDOERS, [name]) == ()


def test_a_comment_after_the_include_does_not_count() -> None:
    assert overriding_sudoers(SUDOERS + "# the end\n", []) == ()


def test_sudo_refuses_everybody_but_root_and_session_managers_user() -> None:
    rules = [
        line for line in _content(Role.COMPUTE, "/etc/sudoers.d/zzzz-corral").split("\n") if line[:1] not in ("", "#")
    ]
    assert rules == ["ALL, !root, !ssm-user ALL=(ALL:ALL) !ALL"]


def test_a_head_accepts_no_key_from_a_home() -> None:
    lines = _content(Role.HEAD, "/etc/ssh/sshd_config.d/70-corral-homes.conf").split("\n")[-3:]
    assert lines == ["Match User *,!root", "    AuthorizedKeysFile none", ""]


def test_users_connect_between_nodes_with_the_keys_in_their_homes() -> None:
    assert [placement.path for placement in user_rights(Role.COMPUTE)] == ["/etc/sudoers.d/zzzz-corral"]


def _content(role: Role, path: str) -> str:
    return next(placement.content for placement in user_rights(role) if placement.path == path).decode()


def test_the_administrators_of_the_environment_are_no_other_rule() -> None:
    assert overriding_sudoers(SUDOERS, ["zzzz-corral", "zzzz-corral-admins"]) == ()
