"""Pulumi's language host, programs and the stand-in provider, forked from a process that has loaded them once.

Loading costs each a half to two seconds of CPU, and an `up` starts six. What the engine starts is a script in place of
the Python of the plugins, which asks for a fork and ends as that does; the fork ends if the script is killed.

    engine ---start---> script ---arguments, cwd, environment, files---> server ---fork---> waiter ---fork---> plugin
           <--status---        <-------------exit status-----------------------------------+
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import shutil
import signal
import socket
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import forked_programs
from corral.box import client, provider
from corral.engine.pulumi import environment

if TYPE_CHECKING:
    import pytest

HOST = "corral.engine.pulumi.language_host"
MODULES = (HOST, f"{HOST}.program", "corral.box.provider")
SCRIPT = """#!{python} -ISE
import sys
words = sys.argv[1:]
if "-m" in words and words[words.index("-m") + 1] in {modules!r}:
    import json, os, signal, socket
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.connect({address!r})
    request = os.memfd_create("request")
    document = {{"arguments": words, "cwd": os.getcwd(), "environment": dict(os.environ)}}
    os.pwrite(request, json.dumps(document).encode(), 0)
    socket.send_fds(server, [b"fork"], [0, 1, 2, request])
    status = int.from_bytes(server.recv(4), "big", signed=True)
    if status < 0:
        os.kill(os.getpid(), -status)
    os._exit(status)
else:
    import os
    os.execv({python!r}, [{python!r}, *words])
"""


def use_forked_plugins(script: str) -> None:
    """Let this process start plugins by the script of `python_that_forks`."""
    client.PYTHON = provider.PYTHON = environment.PYTHON = script


def use_real_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test start plugins as corral does."""
    for module in (client, provider, environment):
        monkeypatch.setattr(module, "PYTHON", sys.executable)


def python_that_forks() -> str:
    """The script of this process's server."""
    return _script(os.getpid())


@cache
def _script(_pid: int) -> str:
    """The server ends with this process, which holds the other end of its standard input."""
    folder = Path(tempfile.mkdtemp(prefix="corral-forks-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    address = folder / "requests"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(address))
    listener.listen(64)
    listener.set_inheritable(True)
    reading, writing = os.pipe()
    os.set_inheritable(writing, False)
    actions = [(os.POSIX_SPAWN_DUP2, reading, 0), (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    command = [sys.executable, "-P", __file__, str(listener.fileno())]
    search = os.pathsep.join([str(Path(__file__).parent), str(Path(client.__file__).parents[2])])
    with listener:
        os.posix_spawn(sys.executable, command, {**os.environ, "PYTHONPATH": search}, file_actions=actions)
    os.close(reading)
    script = folder / "python"
    script.write_text(SCRIPT.format(python=sys.executable, modules=MODULES, address=str(address)))
    script.chmod(0o755)
    return str(script)


def load() -> None:
    """Import what hosts, programs and providers import."""
    for package in (HOST, "corral.stacks", "corral.components", "corral.box.provider"):
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


def serve(listener: socket.socket) -> None:
    """Fork for each connection, until standard input ends. Returns in the processes of plugins alone."""
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([0, listener], [], [])
        if 0 in ready:
            os._exit(0)
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            request = become_waiter(connection)
            become_plugin(request)
            return
        connection.close()


def become_waiter(connection: socket.socket) -> dict[str, Any]:
    """Fork the plugin, report how it ends, and kill it if whoever wants to know is gone. Returns in the plugin."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, files, _, _ = socket.recv_fds(connection, 16, 4)
    with os.fdopen(files.pop(), "rb") as file:
        file.seek(0)
        request: dict[str, Any] = json.load(file)
    pid = os.fork()
    if pid == 0:
        connection.close()
        return {**request, "files": files}
    for descriptor in files:
        os.close(descriptor)
    plugin = os.pidfd_open(pid)
    ready, _, _ = select.select([plugin, connection], [], [])
    if plugin not in ready:
        signal.pidfd_send_signal(plugin, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if plugin in ready:
        connection.send(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
    os._exit(0)


def become_plugin(request: dict[str, Any]) -> None:
    """Take over files, directory, environment and arguments, and run the module as `python -m` does."""
    flags, words = split(request["arguments"])
    forked_programs.take_over(request["files"], request["cwd"], request["environment"])
    if "-u" in flags:
        sys.stdout.reconfigure(write_through=True)  # type: ignore[union-attr]
    sys.path = [entry for entry in sys.path if entry != str(Path(__file__).parent)]
    if "-P" not in flags:
        sys.path.insert(0, request["cwd"])
    sys.argv = words
    sys.modules.pop(words[0], None)
    try:
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    finally:
        sys.stdout.flush()


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The interpreter's options, and the module with its arguments."""
    at = arguments.index("-m")
    return arguments[:at], arguments[at + 1 :]


if __name__ == "__main__":
    load()
    serve(socket.socket(fileno=int(sys.argv[1])))
