"""A VPC of machines, seen from outside: start it, ask it for machines, run commands in them, hear of their ends."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from types import MappingProxyType
from typing import Any

from corral.box.vpc.keeper import SOCKET
from corral.box.vpc.probe import Ground

_LINE = 65536
_SHELL = {"PATH": "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
# What no machine needs of this one, or must not know.
_LEFT_OUT = shutil.ignore_patterns("shadow*", "gshadow*", "ssh_host_*", "munge", "slurm", "private", "sudoers*")
_DISK = ("etc", "var", "opt", "tmp", "root", "box", "mount")
_VAR = ("cache", "lib", "log", "spool", "tmp")


class MachineError(Exception):
    """A machine that does not start or does not exist; its text is a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vpc:
    """A running VPC, reached through the sockets in its directory."""

    directory: Path

    def start(
        self,
        name: str,
        host_name: str,
        address: IPv4Address,
        disk: Path,
        init: Sequence[str],
        mounts: Mapping[str, Path] = MappingProxyType({}),
        system: Path = Path("/"),
    ) -> None:
        """Starts a machine from a disk that `furnish` made. `mounts`: further directories by their place below /.

        `system`: the root directory of the system whose programs it has. Raises MachineError.
        """
        bound = [f"{source}=/{target}" for target, source in sorted(mounts.items())]
        wanted = {"name": name, "host_name": host_name, "address": str(address), "directory": str(disk)}
        self._ask({"do": "start", **wanted, "system": str(system), "init": list(init), "mounts": bound})

    def machines(self) -> Mapping[str, IPv4Address]:
        """The addresses of the running machines by name."""
        return {name: IPv4Address(address) for name, address in self._ask({"do": "list"}).items()}

    def end(self, name: str) -> None:
        """Ends a machine at once, as a power cut does. Raises MachineError where none of this name runs."""
        self._ask({"do": "end", "name": name})

    def ask_to_end(self, name: str) -> None:
        """Asks the machine's init to end, as the button of a machine does."""
        self._ask({"do": "ask-to-end", "name": name})

    def link(self, name: str, *, up: bool) -> None:
        """Plugs the machine's network card in or out."""
        self._ask({"do": "link", "name": name, "up": up})

    def plug(self, name: str, label: str, source: Path) -> None:
        """Lets the directory appear as /box/volumes/LABEL of a running machine. Raises MachineError."""
        self._ask({"do": "plug", "name": name, "label": label, "source": str(source)})

    def unplug(self, name: str, label: str) -> None:
        """Lets what was plugged in vanish, whatever uses it; also where the machine has ended."""
        self._ask({"do": "unplug", "name": name, "label": label})

    def freeze(self, name: str) -> None:
        """Stops every process of the machine; its kernel goes on answering."""
        self._ask({"do": "freeze", "name": name})

    def thaw(self, name: str) -> None:
        """Lets the machine's processes go on."""
        self._ask({"do": "thaw", "name": name})

    def tell_names(self, names: Mapping[str, Sequence[str]]) -> None:
        """What the resolver knows from now on: addresses by name in small letters."""
        self._ask({"do": "names", "names": {name: list(addresses) for name, addresses in names.items()}})

    def run(self, name: str, command: Sequence[str], **environment: str) -> subprocess.CompletedProcess[str]:
        """What the command did in the machine. Its exit code is the caller's business. Raises MachineError."""
        with _pipe() as (out_read, out), _pipe() as (problems_read, problems), Path(os.devnull).open("rb") as nothing:
            request = {"do": "run", "name": name, "command": list(command), "environment": {**_SHELL, **environment}}
            asked = self._send(request, (nothing.fileno(), out, problems))
            os.close(out)
            os.close(problems)
            with os.fdopen(os.dup(out_read), "rb") as output, os.fdopen(os.dup(problems_read), "rb") as errors:
                written, complained = output.read(), errors.read()
            code = _answer(asked)["code"]
        return subprocess.CompletedProcess(command, code, written.decode(), complained.decode())

    def attach(self, name: str, command: Sequence[str], **environment: str) -> int:
        """The exit code of a command in the machine that has this process's own input, output and error.

        That of one that a signal ended is 128 and the signal's number, as in a shell.
        """
        request = {"do": "run", "name": name, "command": list(command), "environment": {**_SHELL, **environment}}
        code = int(_answer(self._send(request, (0, 1, 2)))["code"])
        return code if code >= 0 else 128 - code

    def connect(self, address: IPv4Address, port: int) -> socket.socket:
        """A connection to a port inside the VPC. Raises MachineError where nobody answers there."""
        connection = self._send({"do": "connect", "address": str(address), "port": port})
        _read(connection)
        return connection

    def ends(self) -> Iterator[str]:
        """The names of machines, each when it has ended, until the VPC ends."""
        with self._send({"do": "events"}) as events, events.makefile("rb") as lines:
            for line in lines:
                if ended := json.loads(line).get("ended"):
                    yield ended

    def _ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        return _answer(self._send(request))

    def _send(self, request: Mapping[str, Any], descriptors: Sequence[int] = ()) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(self.directory / SOCKET))
        except OSError as error:
            connection.close()
            raise MachineError(f"the VPC in {self.directory} does not answer: {error}") from error
        socket.send_fds(connection, [json.dumps(request).encode() + b"\n"], descriptors)
        return connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """The process that is a VPC; all machines end with it."""

    vpc: Vpc
    process: subprocess.Popen[bytes]

    def runs(self) -> bool:
        """False once it has ended, with all its machines."""
        return self.process.poll() is None

    def close(self) -> None:
        """Ends all machines and the VPC."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def open_vpc(directory: Path, network: IPv4Network, ground: Ground) -> Keeper:
    """A VPC with this range and no machines. Its sockets are in the directory, which has a short path.

    Raises MachineError.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    spaces = ["--net", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child", "--mount-proc"]
    keeper = [sys.executable, "-m", "corral.box.vpc.keeper", str(directory), str(network)]
    with (directory / "keeper.log").open("ab") as log:
        process = subprocess.Popen(
            ["unshare", *ground.own_user, *spaces, *keeper],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, "PATH": _SHELL["PATH"]},  # an ordinary user's need not have the programs of root
            start_new_session=True,  # Ctrl-C is for the daemon, which then ends it in order
        )
    assert process.stdout is not None
    with process.stdout:
        ready = process.stdout.readline()
    if ready != b"ready\n":
        end = (directory / "keeper.log").read_text(encoding="utf-8").splitlines()[-1:]
        raise MachineError(f"the VPC in {directory} does not start: {' '.join(end)}")
    return Keeper(vpc=Vpc(directory=directory), process=process)


def furnish(disk: Path, settings: Path | None = None) -> None:
    """Makes the disk of a machine that never ran: an /etc as `copy_settings` makes it, and empty directories."""
    for name in _DISK:
        (disk / name).mkdir(parents=True, exist_ok=True)
    for name in _VAR:
        (disk / "var" / name).mkdir(exist_ok=True)
    (disk / "root").chmod(0o700)
    (disk / "tmp").chmod(0o1777)
    (disk / "var/tmp").chmod(0o1777)
    (disk / "console").touch()
    (disk / "box" / "devices").touch()
    if settings is None:
        copy_settings(disk / "etc")
    else:  # a program of its own copies faster, and beside this one's threads; what its user may not read stays out
        subprocess.run(["cp", "-a", f"{settings}/.", str(disk / "etc")], check=False, capture_output=True)


def copy_settings(target: Path, system: Path = Path("/")) -> None:
    """A system's /etc without its secrets, and without what this user may not read. Nobody has a password."""
    with contextlib.suppress(shutil.Error):
        shutil.copytree(system / "etc", target, symlinks=True, ignore=_LEFT_OUT, dirs_exist_ok=True)
    _close_accounts(target)


def _close_accounts(settings: Path) -> None:
    """An /etc/shadow without a secret: `su` of a newer PAM refuses even root a user who is in none."""
    passwd, shadow = settings / "passwd", settings / "shadow"
    names = [line.partition(":")[0] for line in passwd.read_text(encoding="utf-8").splitlines() if ":" in line]
    shadow.write_text("".join(f"{name}:*:::::::\n" for name in names), encoding="utf-8")
    shadow.chmod(0o600)


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    try:
        yield read, write
    finally:
        for descriptor in (read, write):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _answer(connection: socket.socket) -> Mapping[str, Any]:
    with connection:
        return _read(connection)


def _read(connection: socket.socket) -> Mapping[str, Any]:
    """The first line of the answer, and not a byte more."""
    line = b""
    while not line.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte:
            raise MachineError("the VPC has ended")
        line += byte
    answer = json.loads(line)
    if problem := answer.get("problem"):
        raise MachineError(problem)
    return dict(answer)
