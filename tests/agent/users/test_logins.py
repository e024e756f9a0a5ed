"""Logins and uses of sudo, from lines of the journal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corral.agent.events import Event, EventLog
from corral.agent.users.logins import LoginsTask, login_events


def line(message: object, program: str, *, uid: str = "0", rights: str = "1ffffffffff") -> str:
    """A line of `journalctl --output=json`. `rights`: the capabilities of the process that wrote it."""
    trusted = {"_EXE": program, "_UID": uid, "_CAP_EFFECTIVE": rights}
    return json.dumps({"MESSAGE": message, "__REALTIME_TIMESTAMP": "1790000000500000", **trusted})


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (
            "Accepted publickey for ada from 127.0.0.1 port 53412 ssh2: ED25519 SHA256:q1w2e3",
            "ada by ssh with ED25519 SHA256:q1w2e3",
        ),
        ("Accepted password for bob from 10.64.0.9 port 2 ssh2", "bob by ssh"),
    ],
)
def test_a_login_names_who_and_the_key(message: str, text: str) -> None:
    (event,) = login_events(line(message, "/usr/lib/openssh/sshd-session"))
    assert (event.event, event.text, event.at) == (Event.LOGIN, text, 1790000000.5)


@pytest.mark.parametrize(
    ("message", "text", "allowed"),
    [
        (
            "   grace : TTY=pts/1 ; PWD=/home/grace ; USER=root ; COMMAND=/usr/bin/id -u",
            "grace as root: /usr/bin/id -u",
            True,
        ),
        (
            "   grace : PWD=/ ; USER=slurm ; GROUP=slurm ; COMMAND=/bin/sh -c true",
            "grace as slurm: /bin/sh -c true",
            True,
        ),
        (
            "     ada : command not allowed ; PWD=/home/ada ; USER=root ; COMMAND=/usr/bin/cat /etc/shadow",
            "ada as root: /usr/bin/cat /etc/shadow, refused: command not allowed",
            False,
        ),
        (
            "     ada : a password is required ; TTY=pts/0 ; PWD=/ ; USER=root ; COMMAND=/usr/bin/id",
            "ada as root: /usr/bin/id, refused: a password is required",
            False,
        ),
    ],
)
def test_a_use_of_sudo_names_who_as_whom_and_what(message: str, text: str, allowed: bool) -> None:
    (event,) = login_events(line(message, "/usr/bin/sudo"))
    assert (event.event, event.text, event.facts["allowed"]) == (Event.SUDO, text, allowed)


@pytest.mark.parametrize(
    ("message", "program"),
    [
        ("pam_unix(sudo:session): session opened for user root(uid=0) by (uid=2001)", "/usr/bin/sudo"),
        ("Connection closed by 10.64.0.9 port 2", "/usr/sbin/sshd"),
        ("Accepted publickey for eve from 1.2.3.4 port 5 ssh2", "/usr/bin/sudo"),
        ([65, 255], "/usr/sbin/sshd"),
    ],
)
def test_other_lines_are_no_events(message: object, program: str) -> None:
    assert list(login_events(line(message, program))) == []


def test_a_command_does_not_reach_a_terminal_unescaped() -> None:
    (event,) = login_events(line("ada : PWD=/ ; USER=root ; COMMAND=/bin/echo \x1b[2J", "/usr/bin/sudo"))
    assert event.text == r"ada as root: /bin/echo \x1b[2J"


def test_no_command_hides_the_events_around_it() -> None:
    sudo = line("ada : PWD=/ ; USER=root ; COMMAND=/bin/ls \u2028", "/usr/bin/sudo").replace("\\u2028", "\u2028")
    events = list(login_events("\n".join((sudo, "{truncated", line(LOGIN, "/usr/sbin/sshd"), ""))))
    assert [one.text for one in events] == [r"ada as root: /bin/ls \u2028", "grace by ssh"]


def test_events_have_the_time_of_the_journal(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl")
    LoginsTask(read=lambda: line("Accepted publickey for ada from ::1 port 1 ssh2", "/usr/sbin/sshd"), journal=log)()
    (written,) = (json.loads(one) for one in (tmp_path / "events.jsonl").read_text().splitlines())
    assert (written["at"], written["event"], written["user"]) == ("2026-09-21T14:13:20Z", "login", "ada")


LOGIN = "Accepted publickey for grace from ::1 port 1 ssh2"
SUDO = "grace : PWD=/ ; USER=root ; COMMAND=/usr/bin/id"


@pytest.mark.parametrize(
    ("message", "program", "uid", "rights"),
    [
        (LOGIN, "/usr/lib/openssh/sshd-session", "2000", "0"),
        (LOGIN, "/usr/lib/openssh/sshd-session", "2000", "1ffffffffff"),
        (SUDO, "/usr/bin/sudo", "2000", "0"),
    ],
)
def test_a_program_that_a_user_runs_under_a_debugger_forges_no_event(
    message: str, program: str, uid: str, rights: str
) -> None:
    assert list(login_events(line(message, program, uid=uid, rights=rights))) == []
