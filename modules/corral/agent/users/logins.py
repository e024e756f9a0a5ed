"""Who logs in to the head by ssh and who uses sudo there, from the system's journal, as events.

The journal names the program that wrote a line, its user and its capabilities as the kernel knows them. Users may start
these programs too, under a debugger for instance, but then these have no capabilities.
Sessions of Systems Manager run no login program: CloudTrail has them, with the IAM principal (StartSession).
Pure, but for `LoginsTask`. Sources: systemd.journal-fields(7), "Trusted Journal Fields"; sshd's auth_log() in auth.c of
OpenSSH; sudo's log format, sudoers(5), "LOG FORMAT".
"""

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from corral.agent.events import Event, EventLog
from corral.model.printable import printable

POLL_EVERY_S = 60.0
PROGRAMS = ("/usr/sbin/sshd", "/usr/lib/openssh/sshd-session", "/usr/bin/sudo")  # the second from OpenSSH 9.8 on
_ACCEPTED = re.compile(r"Accepted \S+ for (?P<user>\S+) from (?P<address>\S+) port \d+ ssh2(: (?P<key>.+))?")
_SUDO = re.compile(
    r" *(?P<user>\S+) : (?P<refusal>[^=]+ ; )?(TTY=\S+ ; )?PWD=.*? ; USER=(?P<target>\S+) ;.*? COMMAND=(?P<command>.*)"
)
FIELDS = "MESSAGE,_EXE,_UID,_CAP_EFFECTIVE"
_COMMAND = 120  # characters of a command that an event keeps

log = logging.getLogger("corral.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginEvent:
    """An event with its time, in seconds since 1970."""

    event: Event
    at: float
    text: str
    facts: Mapping[str, object]


def login_events(journal: str) -> Iterator[LoginEvent]:
    """Yield the logins and uses of sudo in lines of `journalctl --output=json`; other lines are skipped.

    A command may contain any character but a newline: the journal prints other separators of lines as they are.
    """
    for line in filter(None, journal.split("\n")):
        try:
            entry = json.loads(line)
        except ValueError:
            log.warning("logins: skip a line of the journal that is no JSON: %s", printable(line, _COMMAND))
            continue
        message, at = entry.get("MESSAGE"), int(entry["__REALTIME_TIMESTAMP"]) / 1e6
        if not isinstance(message, str):  # bytes that are no text
            continue
        is_privileged = int(entry.get("_CAP_EFFECTIVE", "0"), 16) != 0
        if entry["_EXE"] == PROGRAMS[-1]:
            if is_privileged and (found := _SUDO.fullmatch(message)):
                yield _sudo(found, at)
        elif is_privileged and entry["_UID"] == "0" and (found := _ACCEPTED.fullmatch(message)):
            yield _login(found, at)


def _login(found: re.Match[str], at: float) -> LoginEvent:
    user, key = printable(found["user"]), found["key"] or ""
    return LoginEvent(
        event=Event.LOGIN,
        at=at,
        text=f"{user} by ssh{f' with {key}' if key else ''}",
        facts={"user": user, "address": found["address"], "key": key},
    )


def _sudo(found: re.Match[str], at: float) -> LoginEvent:
    user, target, command = printable(found["user"]), found["target"], printable(found["command"], _COMMAND)
    refusal = (found["refusal"] or "").removesuffix(" ; ")
    return LoginEvent(
        event=Event.SUDO,
        at=at,
        text=f"{user} as {target}: {command}{f', refused: {refusal}' if refusal else ''}",
        facts={"user": user, "as": target, "command": command, "allowed": not refusal},
    )


@dataclass(kw_only=True)
class LoginsTask:
    """A background task of the autoscaler. `read`: the journal's lines since the last call, see `Host.journal`."""

    read: Callable[[], str]
    journal: EventLog

    def __call__(self) -> None:
        """Log the events since the last call. Raises AgentError."""
        for one in login_events(self.read()):
            self.journal.log_event(one.event, one.text, at=one.at, **one.facts)
