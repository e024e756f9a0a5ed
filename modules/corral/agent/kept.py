"""Daemons where no systemd starts them again: a shell for each does, with the rules of their units on EC2."""

import contextlib
import socket as sockets
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from corral.agent.hosts import Daemon

_STEP_S = 0.1
_KEPT = "corral-kept"
# Restart=always, RestartSec=5
_ALWAYS = ("/bin/sh", "-c", 'while :; do "$@"; sleep 5; done', _KEPT)
# Restart=on-failure, RestartSec=5. Exit code 0 and four signals are no failure (systemd.service(5), "Restart=").
_SCRIPT = """while :; do
    "$@"
    code=$?
    case $code in 0 | 129 | 130 | 141 | 143) exit ;; esac # SIGHUP, SIGINT, SIGPIPE, SIGTERM
    echo "$(date): ended with $code, starts again in 5 s"
    sleep 5
done"""
_ON_FAILURE = ("/bin/sh", "-c", _SCRIPT, _KEPT)


def kept(command: Sequence[str], *, on_failure: bool) -> Sequence[str]:
    """What starts a command that stays in the foreground, and again 5 s after it has ended: always, or if it failed."""
    return (*(_ON_FAILURE if on_failure else _ALWAYS), *command)


def leave_running(command: Sequence[str], log: Path) -> None:
    """Starts a command that outlives this process; what it prints is in the log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)


def listens(socket: str, within_s: float) -> bool:
    """True as soon as somebody takes connections at this socket; False where nobody does within this time."""
    until = time.monotonic() + within_s
    while True:
        with contextlib.suppress(OSError), sockets.socket(sockets.AF_UNIX) as one:
            one.connect(socket)
            return True
        if time.monotonic() > until:
            return False
        time.sleep(_STEP_S)


def processes(daemon: Daemon) -> tuple[int, ...]:
    """The processes of a daemon on this machine, and who starts it again: by their program, and by what they were told
    to do.
    """
    return tuple(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _is(daemon, entry))


def _is(daemon: Daemon, entry: Path) -> bool:
    try:
        words = (entry / "cmdline").read_bytes().split(b"\0")
        if daemon.packaged:
            # Debian's /usr/sbin/slurmctld is a link to one of several alternatives. Who has it in his words keeps it,
            # or will be it, once he has changed his user.
            program = Path(daemon.command[0])
            return daemon.command[0].encode() in words or _program(entry) in (program.name, program.resolve().name)
        return daemon.command[-1].encode() in words and (b"corral.agent" in words or _KEPT.encode() in words)
    except OSError:  # processes come and go
        return False


def _program(entry: Path) -> str:
    """The program of a process. To look at that of one which has changed its user takes more than a box's root may."""
    try:
        return (entry / "exe").readlink().name
    except PermissionError:
        return (entry / "comm").read_text(encoding="utf-8").strip()
