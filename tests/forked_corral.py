"""`corral` as a process of its own that does not load the program again: each is a fork of one that has.

Loading costs a command's process a second of CPU, and the tests run some two thousand commands. Those that test how a
process starts, ends or is killed start the real one.

    tests ---arguments, cwd, environment, three files---> server ---fork---> waiter ---fork---> the command
          <-----------------exit status---------------------------------------+
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TextIO

LARGEST_REQUEST = 1 << 18  # bytes; an environment has a few thousand
STATUS_BYTES = 4
STDERR = 2


def run_corral(
    *arguments: str, cwd: Path | str | None = None, env: Mapping[str, str] | None = None, stdin: int | None = None
) -> subprocess.CompletedProcess[str]:
    """The completed `corral ARGUMENTS`; `stdin` is a descriptor, otherwise nothing can be read."""
    request = {
        "arguments": arguments,
        "cwd": str(cwd or Path.cwd()),
        "environment": dict(os.environ if env is None else env),
    }
    out, err = os.memfd_create("stdout"), os.memfd_create("stderr")
    nothing = os.open(os.devnull, os.O_RDONLY)
    reading, writing = os.pipe()
    try:
        files = [nothing if stdin is None else stdin, out, err, writing]
        socket.send_fds(_server(os.getpid()), [json.dumps(request).encode()], files)
        os.close(writing)
        writing = -1
        status = _read_status(reading)
        return subprocess.CompletedProcess(["corral", *arguments], status, _text(out), _text(err))
    finally:
        for descriptor in (nothing, out, err, reading, writing):
            if descriptor >= 0:
                os.close(descriptor)


def _read_status(reading: int) -> int:
    seen = b""
    while len(seen) < STATUS_BYTES:
        more = os.read(reading, STATUS_BYTES - len(seen))
        if not more:
            raise RuntimeError("the process that forks corral has ended")
        seen += more
    return int.from_bytes(seen, "big", signed=True)


def _text(descriptor: int) -> str:
    with open(descriptor, encoding="utf-8", closefd=False) as file:
        file.seek(0)
        return file.read()


@cache
def _server(_pid: int) -> socket.socket:
    """The connection to the server of this process, which ends with it: then nobody holds the other end."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LARGEST_REQUEST)
    nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1)]
    with theirs:
        theirs.set_inheritable(True)
        command = [sys.executable, __file__, str(theirs.fileno())]
        os.posix_spawn(sys.executable, command, os.environ, file_actions=nothing)
    return ours


def serve(requests: socket.socket) -> None:
    """Fork for each request, until nobody can send one. Returns in the processes of commands alone."""
    load_everything()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # waiters are nobody's to wait for
    while True:
        message, files, _, _ = socket.recv_fds(requests, LARGEST_REQUEST, 4)
        if not message:
            os._exit(0)
        if os.fork() == 0:
            requests.close()
            become_waiter(files.pop(), files)
            become_command(json.loads(message), files)
            return
        for descriptor in files:
            os.close(descriptor)


def load_everything() -> None:
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


def become_waiter(writing: int, files: Sequence[int]) -> None:
    """Fork once more, and report how that process ends. Returns in it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        os.close(writing)
        return
    for descriptor in files:
        os.close(descriptor)
    _, status = os.waitpid(pid, 0)
    os.write(writing, os.waitstatus_to_exitcode(status).to_bytes(STATUS_BYTES, "big", signed=True))
    os._exit(0)


def become_command(request: Mapping[str, Any], files: Sequence[int]) -> None:
    """Take over the request's files, directory, environment and arguments."""
    for number, descriptor in enumerate(files):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin, sys.stdout, sys.stderr = _stream(0, "r"), _stream(1, "w"), _stream(2, "w")
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["cwd"])
    sys.argv = ["corral", *request["arguments"]]


def _stream(descriptor: int, mode: str) -> TextIO:
    """As Python opens its standard streams."""
    buffering = 1 if descriptor == STDERR or os.isatty(descriptor) else -1
    errors = "backslashreplace" if descriptor == STDERR else "strict"
    return os.fdopen(descriptor, mode, buffering, encoding="utf-8", errors=errors, closefd=False)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
    from corral.cli import main

    main()
