"""Supervise daemons without systemd: a shell restarts each one, by the rules of its unit on EC2."""

import contextlib
import socket as sockets
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from corral.agent.host.base import Daemon

_STEP_S = 0.1
_SUPERVISOR = "corral-supervise"
_ENTRY_POINT = b"/corral/agent/entry_point.py"  # on the command line of each of the agent's own daemons
# Restart=always, RestartSec=5
_ALWAYS = ("/bin/sh", "-c", 'while :; do "$@"; sleep 5; done', _SUPERVISOR)
# Restart=on-failure, RestartSec=5. Exit code 0 and four signals are not failures (systemd.service(5), "Restart=").
_SCRIPT = """while :; do
    "$@"
    code=$?
    case $code in 0 | 129 | 130 | 141 | 143) exit ;; esac # SIGHUP, SIGINT, SIGPIPE, SIGTERM
    echo "$(date): exited with $code, restarting in 5 s"
    sleep 5
done"""
_ON_FAILURE = ("/bin/sh", "-c", _SCRIPT, _SUPERVISOR)


def supervise(command: Sequence[str], *, on_failure: bool) -> Sequence[str]:
    """Return a shell command that runs this one and restarts it 5 s after its end: always, or only on failure."""
    return (*(_ON_FAILURE if on_failure else _ALWAYS), *command)


def start_detached(command: Sequence[str], log: Path) -> None:
    """Start a command that outlives this process, in `/` as systemd does, with its output in the log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        subprocess.Popen(command, cwd="/", stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)


def listens(socket: str, within_s: float) -> bool:
    """Wait until the socket accepts connections; return False on timeout."""
    until = time.monotonic() + within_s
    while True:
        with contextlib.suppress(OSError), sockets.socket(sockets.AF_UNIX) as one:
            one.connect(socket)
            return True
        if time.monotonic() > until:
            return False
        time.sleep(_STEP_S)


def processes(daemon: Daemon) -> tuple[int, ...]:
    """Return the pids of a daemon and of its supervisor, found by program and command line."""
    return tuple(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _is(daemon, entry))


def _is(daemon: Daemon, entry: Path) -> bool:
    try:
        words = (entry / "cmdline").read_bytes().split(b"\0")
        if daemon.packaged:
            # Debian's /usr/sbin/slurmctld is a link to one of several alternatives. A process with it on the command
            # line is its supervisor, or a wrapper that will exec it.
            program = Path(daemon.command[0])
            return daemon.command[0].encode() in words or _program(entry) in (program.name, program.resolve().name)
        by_agent = _SUPERVISOR.encode() in words or any(word.endswith(_ENTRY_POINT) for word in words)
        return by_agent and daemon.command[-1].encode() in words
    except OSError:  # the process has ended
        return False


def _program(entry: Path) -> str:
    """The program of a process. The box's root may not read /proc/PID/exe of a process that changed its user."""
    try:
        return (entry / "exe").readlink().name
    except PermissionError:
        return (entry / "comm").read_text(encoding="utf-8").strip()
