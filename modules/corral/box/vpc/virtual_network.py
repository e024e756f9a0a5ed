"""The client of a VPC's process: start a VPC and its machines, run commands in them, and watch their exits."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from corral.box.vpc.capabilities import HostSupport
from corral.box.vpc.vpc_state import CONTROL_SOCKET

_SHELL = {"PATH": "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
# Secrets, and files that no machine needs.
_LEFT_OUT = shutil.ignore_patterns("shadow*", "gshadow*", "ssh_host_*", "munge", "slurm", "private", "sudoers*")
_DISK = ("etc", "var", "opt", "tmp", "root", "box", "mount")
_VAR = ("cache", "lib", "log", "spool", "tmp")


class MachineError(Exception):
    """A machine that does not start or does not exist; the text is a sentence for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualMachineStart:
    """A virtual machine to start. `cards`: the addresses of its network cards with their subnets, by MAC address, the
    first one's first.

    `command`: QEMU's, with {link0}, {link1} ... for the taps of the cards, and {monitor}. `directory`: that of its
    log. `key`: the ssh key of its root. `boot_wait`: how long it stands still before it boots, an argument of sleep.
    `volumes`: the files of its volumes, by label. `watched_console`: its console's file if its kernel may stand still.
    """

    name: str
    cards: Mapping[str, IPv4Interface]
    directory: Path
    command: tuple[str, ...]
    environment: Mapping[str, str]
    key: Path
    boot_wait: str
    volumes: Mapping[str, Path]
    watched_console: Path | None = None


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
        """Start a machine from a disk of `create_disk`. `mounts`: further directories by their path below /.

        `system`: the root directory of its system. Raises MachineError.
        """
        bound = [f"{source}=/{target}" for target, source in sorted(mounts.items())]
        machine = {"name": name, "host_name": host_name, "address": str(address), "directory": str(disk)}
        self._request({"action": "start", **machine, "system": str(system), "init": list(init), "mounts": bound})

    def start_virtual(self, machine: VirtualMachineStart) -> None:
        """Start a virtual machine; the VPC was started for them. Raises MachineError."""
        cards = {mac: str(address) for mac, address in machine.cards.items()}
        start = {**asdict(machine), "cards": cards, "directory": str(machine.directory)}
        volumes = {label: str(source) for label, source in machine.volumes.items()}
        console = str(machine.watched_console) if machine.watched_console else None
        files = {"key": str(machine.key), "volumes": volumes, "watched_console": console}
        self._request({"action": "start", **start, **files})

    def machines(self) -> Mapping[str, IPv4Address]:
        """The addresses of the running machines by name."""
        return {name: IPv4Address(address) for name, address in self._request({"action": "list"}).items()}

    def kill(self, name: str) -> None:
        """Kill a machine, as a power cut does. Raises MachineError if none of this name runs."""
        self._request({"action": "kill", "name": name})

    def shut_down(self, name: str) -> None:
        """Shut a machine down as EC2 does; it may run on for minutes. Raises MachineError if none of this name runs."""
        self._request({"action": "shut-down", "name": name})

    def disconnect(self, name: str) -> None:
        """Drop all packets from and to the machine; its card keeps its carrier. Raises MachineError."""
        self._request({"action": "disconnect", "name": name})

    def reconnect(self, name: str) -> None:
        """Undo `disconnect`. Raises MachineError."""
        self._request({"action": "reconnect", "name": name})

    def attach_volume(self, name: str, label: str, source: Path) -> None:
        """Mount the directory as /box/volumes/LABEL of a running machine. Raises MachineError."""
        self._request({"action": "attach-volume", "name": name, "label": label, "source": str(source)})

    def detach_volume(self, name: str, label: str) -> None:
        """Unmount the directory, even if it is in use or the machine has ended."""
        self._request({"action": "detach-volume", "name": name, "label": label})

    def freeze(self, name: str) -> None:
        """Stop every process of the machine; its kernel still answers."""
        self._request({"action": "freeze", "name": name})

    def thaw(self, name: str) -> None:
        """Continue the machine's processes."""
        self._request({"action": "thaw", "name": name})

    def serve(self, address: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Give the VPC an address, and run a server there, unless it runs. The command is the server's own."""
        self._request(
            {"action": "serve", "address": address, "command": list(command), "environment": dict(environment)}
        )

    def set_dns_names(self, names: Mapping[str, Sequence[str]]) -> None:
        """Replace the resolver's names: addresses by name in lower case."""
        self._request({"action": "set-names", "names": {name: list(addresses) for name, addresses in names.items()}})

    def set_listeners(self, listeners: Mapping[str, Sequence[str]]) -> None:
        """Replace the listeners of load balancers: targets by listener, each an address with a port. MachineError."""
        self._request({"action": "set-listeners", "listeners": {name: list(to) for name, to in listeners.items()}})

    def run(self, name: str, command: Sequence[str], **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the machine. Its exit code is not checked. Raises MachineError."""
        with _pipe() as (stdout, out), _pipe() as (stderr, errors), Path(os.devnull).open("rb") as no_input:
            given = (no_input.fileno(), out.fileno(), errors.fileno())
            connection = self._send(_run_request(name, command, environment), given)
            out.close()  # now only the command holds these ends
            errors.close()
            with ThreadPoolExecutor(1) as reader:  # a command that fills one pipe waits for its reader
                error_text = reader.submit(stderr.read)
                text = stdout.read().decode()
            code = _response(connection)["code"]
        return subprocess.CompletedProcess(command, code, text, error_text.result().decode())

    def attach(self, name: str, command: Sequence[str], **environment: str) -> int:
        """Run a command with this process's input, output and error. Returns its exit code.

        After a signal it is 128 plus the signal's number, as in a shell.
        """
        code = int(_response(self._send(_run_request(name, command, environment), (0, 1, 2)))["code"])
        return code if code >= 0 else 128 - code

    def connect(self, address: IPv4Address, port: int) -> socket.socket:
        """A connection to a port inside the VPC. Raises MachineError if it is refused."""
        connection = self._send({"action": "connect", "address": str(address), "port": port})
        try:
            _read(connection)
        except MachineError:
            connection.close()
            raise
        return connection

    def watch_exits(self) -> Iterator[str]:
        """The names of machines as they exit, until the VPC ends. Raises MachineError."""
        events = self._send({"action": "events"})
        _read(events)  # the VPC's process has registered this listener
        return _exits(events)

    def _request(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        return _response(self._send(request))

    def _send(self, request: Mapping[str, Any], descriptors: Sequence[int] = ()) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(self.directory / CONTROL_SOCKET))
        except OSError as error:
            connection.close()
            raise MachineError(f"the VPC in {self.directory} does not answer: {error}") from error
        socket.send_fds(connection, [json.dumps(request).encode() + b"\n"], descriptors)
        return connection


@dataclass(frozen=True, slots=True, kw_only=True)
class VpcProcess:
    """The process of a VPC; all machines end with it."""

    vpc: Vpc
    process: subprocess.Popen[bytes]

    def is_running(self) -> bool:
        """False once it and all its machines have ended."""
        return self.process.poll() is None

    def close(self) -> None:
        """End all machines and the VPC."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def start_vpc(directory: Path, network: IPv4Network, support: HostSupport, *, is_virtual: bool = False) -> VpcProcess:
    """Start a VPC with this range and no machines. Its sockets are in the directory, whose path must be short.

    `is_virtual`: its machines are virtual ones. Raises MachineError.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    namespaces = ["--net", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child", "--mount-proc"]
    command = [sys.executable, "-P", "-m", "corral.box.vpc.namespace_init", str(directory), str(network)]
    command += ["vm"] if is_virtual else []
    with (directory / "vpc.log").open("ab") as log:
        process = subprocess.Popen(
            ["unshare", *support.user_namespace_options, *namespaces, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, "PATH": _SHELL["PATH"]},  # an ordinary user's PATH may lack /usr/sbin
            start_new_session=True,  # Ctrl-C goes to the daemon, which ends the VPC in order
        )
    assert process.stdout is not None
    with process.stdout:
        ready = process.stdout.readline()
    if ready != b"ready\n":
        end = (directory / "vpc.log").read_text(encoding="utf-8").splitlines()[-1:]
        raise MachineError(f"the VPC in {directory} does not start: {' '.join(end)}")
    return VpcProcess(vpc=Vpc(directory=directory), process=process)


def create_disk(disk: Path, etc: Path | None = None) -> None:
    """Create the disk of a new machine: an /etc of `copy_etc`, and empty directories."""
    for name in _DISK:
        (disk / name).mkdir(parents=True, exist_ok=True)
    for name in _VAR:
        (disk / "var" / name).mkdir(exist_ok=True)
    (disk / "root").chmod(0o700)
    (disk / "tmp").chmod(0o1777)
    (disk / "var/tmp").chmod(0o1777)
    (disk / "console").touch()
    (disk / "box" / "devices").touch()
    if etc is None:
        copy_etc(disk / "etc")
    else:  # cp is faster and does not block this process's threads; it skips unreadable files
        subprocess.run(["cp", "-a", f"{etc}/.", str(disk / "etc")], check=False, capture_output=True)


def copy_etc(target: Path, system: Path = Path("/")) -> None:
    """Copy a system's /etc without secrets, passwords and files that this user may not read."""
    with contextlib.suppress(shutil.Error):
        shutil.copytree(system / "etc", target, symlinks=True, ignore=_LEFT_OUT, dirs_exist_ok=True)
    _close_accounts(target)


def _close_accounts(etc: Path) -> None:
    """Write an /etc/shadow without passwords: `su` with a newer PAM refuses users without an entry, even for root."""
    passwd, shadow = etc / "passwd", etc / "shadow"
    names = [line.partition(":")[0] for line in passwd.read_text(encoding="utf-8").splitlines() if ":" in line]
    shadow.write_text("".join(f"{name}:*:::::::\n" for name in names), encoding="utf-8")
    shadow.chmod(0o600)


def _run_request(name: str, command: Sequence[str], environment: Mapping[str, str]) -> Mapping[str, Any]:
    return {"action": "run", "name": name, "command": list(command), "environment": {**_SHELL, **environment}}


def _exits(events: socket.socket) -> Iterator[str]:
    with events, events.makefile("rb") as lines:
        for line in lines:
            yield json.loads(line)["ended"]


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The reading and the writing end.

    They are files, because a file closes once: a descriptor closed twice is that of another thread by then.
    """
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as read_end, os.fdopen(writing, "wb") as write_end:
        yield read_end, write_end


def _response(connection: socket.socket) -> Mapping[str, Any]:
    with connection:
        return _read(connection)


def _read(connection: socket.socket) -> Mapping[str, Any]:
    """The first line of the response, without reading further."""
    line = b""
    while not line.endswith(b"\n"):
        try:
            byte = connection.recv(1)
        except ConnectionResetError:  # it was killed before it read the request
            byte = b""
        if not byte:
            raise MachineError("the VPC has ended")
        line += byte
    response = json.loads(line)
    if problem := response.get("problem"):
        raise MachineError(problem)
    return dict(response)
