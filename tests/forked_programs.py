"""Programs that tests start thousands of times, forked from processes that have loaded them once.

Loading costs a process of `corral` a second of CPU, and the box's daemon two. Tests of how a process starts, ends or is
killed start the real one.

    tests ---arguments, cwd, environment, files---> server ---fork---> waiter ---fork---> the program
          <-------------pid, exit status-------------------------------+

A server ends when nobody can send it a request any more. Commands that `corral`'s server forks hold the box's server,
so that the daemons that they start are forked too.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TextIO

from corral.box.daemon import daemon_process

LARGEST_REQUEST = 1 << 18  # bytes; an environment has a few thousand
NUMBER_BYTES = 4
STDERR = 2
CORRAL, BOX = "corral", "box"
UNFORKED = daemon_process.start_process
FILE = "FILE"  # an argument that is the number of a further file


class ForkedProcess:
    """A forked program: what `subprocess.Popen` has of it."""

    def __init__(self, reading: int) -> None:
        self.returncode: int | None = None
        self._reading = reading
        self._pid = 0

    @property
    def pid(self) -> int:
        """Its process id."""
        self._pid = self._pid or self._number()
        return self._pid

    def wait(self) -> int:
        """Its exit status, once it has ended."""
        if self.returncode is None and self.pid:
            self.returncode = self._number()
        return self.returncode or 0

    def kill(self) -> None:
        """Kill it."""
        os.kill(self.pid, signal.SIGKILL)

    def __del__(self) -> None:
        os.close(self._reading)

    def _number(self) -> int:
        seen = b""
        while len(seen) < NUMBER_BYTES:
            more = os.read(self._reading, NUMBER_BYTES - len(seen))
            if not more:
                raise RuntimeError("the process that forks programs has ended")
            seen += more
        return int.from_bytes(seen, "big", signed=True)


def fork_program(
    program: str, arguments: Sequence[str], *, cwd: str, environment: Mapping[str, str], files: Sequence[int]
) -> ForkedProcess:
    """A process of the program with these files: its three standard ones, and those whose numbers replace `FILE`."""
    request = {"arguments": arguments, "cwd": cwd, "environment": dict(environment)}
    reading, writing = os.pipe()
    try:
        socket.send_fds(_server(os.getpid(), program), [json.dumps(request).encode()], [*files, writing])
    finally:
        os.close(writing)
    return ForkedProcess(reading)


def start_daemon(command: Sequence[str], log: int, ready: int) -> ForkedProcess:
    """Stands for `daemon_process.start_process`."""
    words = list(command[command.index("corral.box") + 1 :])
    words[words.index("--ready") + 1] = FILE
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        environment = daemon_process.clean_environment()
        return fork_program(BOX, words, cwd=str(Path.cwd()), environment=environment, files=(nothing, log, log, ready))
    finally:
        os.close(nothing)


_INHERITED: dict[str, socket.socket] = {}  # servers of whoever forked this process


@cache
def _server(_pid: int, program: str) -> socket.socket:
    """The connection to the program's server: this process's own, or that of whoever forked it."""
    if program in _INHERITED:
        return _INHERITED[program]
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LARGEST_REQUEST)
    nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1)]
    others = [] if program == BOX else [_server(_pid, BOX).dup()]
    with theirs:
        for inherited in (theirs, *others):
            inherited.set_inheritable(True)
        words = [str(inherited.fileno()) for inherited in (theirs, *others)]
        if program == CORRAL:
            from forked_plugins import python_that_forks

            words.append(python_that_forks())
        command = [sys.executable, "-P", __file__, program, *words]
        # moto reads its variables when it is imported
        environment = daemon_process.clean_environment() if program == BOX else os.environ
        os.posix_spawn(sys.executable, command, environment, file_actions=nothing)
    for other in others:
        other.close()
    atexit.register(ours.close)
    return ours


def serve(requests: socket.socket) -> None:
    """Fork for each request, until nobody can send one. Returns in the processes of programs alone."""
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # waiters are nobody's to wait for
    while True:
        message, files, _, _ = socket.recv_fds(requests, LARGEST_REQUEST, 5)
        if not message:
            os._exit(0)
        if os.fork() == 0:
            requests.close()
            become_waiter(files.pop(), files)
            become_program(json.loads(message), files)
            return
        for descriptor in files:
            os.close(descriptor)


def load_corral() -> None:
    """Import what commands import when they run, and the tables that they read first."""
    from corral.catalog.aws.images import image_profiles
    from corral.catalog.project_catalog import shipped_catalog
    from corral.catalog.slurm.conf_keys import slurm_changes

    for package in ("corral.cli", "corral.engine", "corral.forecast", "corral.report", "corral.preflight"):
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    for table in (shipped_catalog, image_profiles, slurm_changes):
        table()


def load_box() -> None:
    """Import what the daemon imports when it starts."""
    from corral.box.daemon.shared_loader import share_loader

    share_loader()
    for module in pkgutil.walk_packages(importlib.import_module("corral.box").__path__, "corral.box."):
        if not module.name.startswith("corral.box.provider"):  # a program of its own
            importlib.import_module(module.name)
    importlib.import_module("werkzeug.serving")


def become_waiter(writing: int, files: Sequence[int]) -> None:
    """Fork once more, report the process's id, and how it ends. Returns in it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        os.close(writing)
        return
    for descriptor in files:
        os.close(descriptor)
    with contextlib.suppress(OSError):  # nobody reads it any more
        os.write(writing, pid.to_bytes(NUMBER_BYTES, "big", signed=True))
        _, status = os.waitpid(pid, 0)
        os.write(writing, os.waitstatus_to_exitcode(status).to_bytes(NUMBER_BYTES, "big", signed=True))
    os._exit(0)


def become_program(request: Mapping[str, Any], files: Sequence[int]) -> None:
    """Take over the request's files, directory, environment and arguments."""
    take_over(files[:3], request["cwd"], request["environment"])
    further = iter(files[3:])
    sys.argv = [sys.argv[1], *(str(next(further)) if word == FILE else word for word in request["arguments"])]


def take_over(files: Sequence[int], cwd: str, environment: Mapping[str, str]) -> None:
    """Use these as standard files, directory and environment."""
    for number, descriptor in enumerate(files):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin, sys.stdout, sys.stderr = _stream(0, "r"), _stream(1, "w"), _stream(2, "w")
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(cwd)


def _stream(descriptor: int, mode: str) -> TextIO:
    """As Python opens its standard streams."""
    buffering = 1 if descriptor == STDERR or os.isatty(descriptor) else -1
    errors = "backslashreplace" if descriptor == STDERR else "strict"
    return os.fdopen(descriptor, mode, buffering, encoding="utf-8", errors=errors, closefd=False)


def main() -> None:
    """Load the program, serve, and run it in the processes that are forked."""
    program, requests, *further = sys.argv[1:]
    if program == BOX:
        load_box()
    else:
        load_corral()
        box, script = further
        _INHERITED[BOX] = socket.socket(fileno=int(box))
        sys.path.append(str(Path(__file__).parent))
        importlib.import_module("forked_plugins").use_forked_plugins(script)
        sys.path.pop()
    serve(socket.socket(fileno=int(requests)))
    (run_box if program == BOX else run_corral)()


def run_corral() -> None:
    """Run the command, whose box's daemon is forked."""
    from corral.cli import main as command

    daemon_process.start_process = start_daemon
    command()


def run_box() -> None:
    """Run the daemon in a session of its own."""
    from moto.moto_api._internal import mock_random

    from corral.box.__main__ import main as daemon

    os.setsid()
    mock_random.seed()  # two daemons of one directory must not draw the same ids
    sys.exit(daemon())


if __name__ == "__main__":
    main()
