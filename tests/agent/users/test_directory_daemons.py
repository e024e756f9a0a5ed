"""People of a real directory on a machine: Debian's slapd with TLS, and its sssd and sshd with the agent's files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.users.directory_machine import PASSWORD, DirectoryMachine, within

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="logins of several users need root: run the tests as root")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DirectoryMachine]:
    made = DirectoryMachine(tmp_path_factory.mktemp("machine"))
    try:
        made.start()
        assert within(20, lambda: made.passwd("ada"))
        yield made
    finally:
        made.stop()


@pytest.fixture
def away(machine: DirectoryMachine) -> Iterator[DirectoryMachine]:
    """The machine while the directory is away. Ada has logged in before."""
    assert machine.ssh("ada", "true").returncode == 0
    machine.stop_daemon("slapd")
    assert not within(3, lambda: False)  # what was learned is now too old
    yield machine
    machine.start_slapd()
    machine.look_again()


def test_a_person_has_the_directorys_id_and_a_home_of_the_cluster(machine: DirectoryMachine) -> None:
    assert machine.passwd("ada") == "ada:*:20001:30001:ada:/home/ada:/bin/bash"


def test_somebody_outside_the_filter_is_nobody(machine: DirectoryMachine) -> None:
    assert machine.passwd("olga") == ""


def test_an_id_of_the_system_is_nobodys(machine: DirectoryMachine) -> None:
    assert machine.passwd("eve") == ""


def test_a_user_of_the_system_stays_who_they_are(machine: DirectoryMachine) -> None:
    assert machine.passwd("games").split(":")[2] == "5"
    assert machine.run("getent", "passwd", "20006").stdout == ""


def test_nobody_logs_in_as_a_user_of_the_system_by_a_key_of_the_directory(machine: DirectoryMachine) -> None:
    assert machine.run("/opt/corral/bin/directory-keys", "games", "5").stdout == ""


def test_a_person_logs_in_by_their_key_in_the_directory(machine: DirectoryMachine) -> None:
    assert machine.ssh("ada", "id", "-un").stdout == "ada\n"


def test_nobody_but_root_reads_the_directorys_password(machine: DirectoryMachine) -> None:
    files = ("/etc/sssd/conf.d/60-corral.conf", "/etc/sssd/sssd.conf")
    assert [machine.ssh("ada", "cat", file).returncode for file in files] == [1, 1]


def test_the_directorys_password_is_in_a_file_of_roots_in_sssds_copy_of_it_and_nowhere_else(
    machine: DirectoryMachine,
) -> None:
    assert machine.ssh("ada", "true").returncode == 0
    found = machine.locations(PASSWORD)
    modes = [machine.run("stat", "--format=%U %a", file).stdout.strip() for file in found]
    assert list(zip(found, modes, strict=True)) == [
        ("/etc/sssd/conf.d/60-corral.conf", "root 600"),
        ("/var/lib/sss/db/config.ldb", "root 600"),
    ]


def test_an_administrator_is_in_the_group_that_sudo_lets_in_and_nobody_else(machine: DirectoryMachine) -> None:
    assert [machine.ssh(name, "id", "-Gn").stdout for name in ("dora", "ada")] == ["people operators\n", "people\n"]


def test_a_person_is_known_and_logs_in_while_the_directory_is_away(away: DirectoryMachine) -> None:
    assert (away.passwd("ada").split(":")[2], away.ssh("ada", "id", "-u").stdout) == ("20001", "20001\n")


def test_a_head_makes_a_home_that_others_of_the_group_cannot_enter(machine: DirectoryMachine) -> None:
    assert within(60, lambda: "bob:" in machine.run("getent", "passwd").stdout)  # SSSD lists them in the background
    machine.people_of_head()
    assert machine.run("stat", "--format=%u:%g %a", "/home/bob").stdout == "20002:30001 700\n"
    # Under load SSSD, which lists everybody every two seconds here, may answer sshd too late.
    assert within(30, lambda: machine.ssh("bob", "pwd").stdout == "/home/bob\n")


def test_who_leaves_the_group_is_refused_and_then_unknown(machine: DirectoryMachine) -> None:
    assert within(20, lambda: machine.ssh("carl", "true").returncode == 0)
    machine.take_out("carl")
    refused = machine.ssh("carl", "true").returncode
    assert (refused, within(30, lambda: machine.passwd("carl") == "")) == (255, True)


def test_who_leaves_while_logged_in_loses_the_session_of_a_login_node(machine: DirectoryMachine) -> None:
    assert within(20, lambda: machine.ssh("dora", "true").returncode == 0)
    machine.run("install", "--directory", "--owner=20004", "/home/dora")
    with machine.session("dora"):
        assert machine.ended_sessions() == ""
        machine.take_out("dora")
        assert within(30, lambda: machine.passwd("dora") == "")
        assert machine.ended_sessions() == "20004\n"


def test_nobody_loses_a_session_while_the_directory_is_away(away: DirectoryMachine) -> None:
    away.run("install", "--directory", "--owner=20001", "/home/ada")
    with away.session("ada"):
        assert away.ended_sessions() == ""


def test_a_directory_with_another_authority_is_not_believed(tmp_path: Path) -> None:
    machine = DirectoryMachine(tmp_path, ca="other")
    try:
        machine.start()
        assert not within(8, lambda: machine.passwd("ada"))
    finally:
        machine.stop()


def test_who_leaves_is_refused_at_once_also_by_ldap_with_tls(tmp_path: Path) -> None:
    machine = DirectoryMachine(tmp_path, scheme="ldap", is_patient=True)
    try:
        machine.start()
        assert within(20, lambda: machine.ssh("carl", "true").returncode == 0)
        machine.take_out("carl")
        assert (machine.ssh("carl", "true").returncode, machine.passwd("carl").split(":")[2]) == (255, "20003")
    finally:
        machine.stop()
