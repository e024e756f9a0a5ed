"""The running machines of a VPC, of any kind: commands in them, and reports of their exits."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from corral.box.vpc.bridge import remove_link
from corral.box.vpc.vpc_state import Request, RunningMachine, VpcState


class MachineKind(Protocol):
    """What a machine is: `namespace_machines` and `virtual_machines` implement it."""

    def prepare(self, vpc: VpcState) -> None:
        """Prepare the VPC for machines of this kind."""

    def start_machine(self, vpc: VpcState, request: Request) -> None:
        """Start a machine."""

    def start_command(
        self, vpc: VpcState, machine: RunningMachine, request: Request, descriptors: Sequence[int]
    ) -> subprocess.Popen[bytes]:
        """Start a command in a machine, with these descriptors as standard input, output and error."""

    def shut_down(self, machine: RunningMachine) -> None:
        """Shut a machine down as EC2 does, or kill one that does not end by itself. Returns before it has ended."""

    def freeze(self, machine: RunningMachine) -> None:
        """Stop everything in a machine."""

    def thaw(self, machine: RunningMachine) -> None:
        """Undo `freeze`."""

    def disconnect(self, vpc: VpcState, machine: RunningMachine) -> None:
        """Drop all packets from and to a machine."""

    def reconnect(self, machine: RunningMachine) -> None:
        """Undo `disconnect`."""

    def attach_volume(self, vpc: VpcState, machine: str, label: str, source: str) -> None:
        """Attach a volume to a machine, unless it is attached."""

    def detach_volume(self, vpc: VpcState, machine: str, label: str) -> None:
        """Detach a volume, even if it is in use or the machine has ended."""


def add_machine(vpc: VpcState, name: str, machine: RunningMachine) -> None:
    """Add a machine that has started, and report its exit to all listeners."""
    with vpc.lock:
        vpc.machines[name] = machine
    threading.Thread(target=_report_exit, args=(vpc, name, machine), daemon=True).start()


def run_command(
    kind: MachineKind, vpc: VpcState, request: Request, descriptors: list[int], caller: socket.socket
) -> Mapping[str, Any]:
    """Run a command in a machine with the caller's standard input, output and error. Returns its exit code.

    If the caller disconnects, the command gets SIGHUP, as at the end of a terminal.
    """
    process = kind.start_command(vpc, vpc.machine(request["name"]), request, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    descriptors.clear()
    ended = os.pidfd_open(process.pid)
    if ended not in select.select([caller.fileno(), ended], [], [])[0]:
        _hang_up(process.pid)
    os.close(ended)
    return {"code": process.wait()}


def _hang_up(pid: int) -> None:
    """Send SIGHUP to all that a process has started in a machine, or to it if that is nothing.

    Not to nsenter itself, which waits for its child: one that nobody waits for keeps its PID namespace, and so the
    machine, for ever.
    """
    for one in tuple(_descendants(pid)) or (pid,):
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGHUP)


def _descendants(pid: int) -> Iterator[int]:
    for threads in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            for child in map(int, threads.read_text(encoding="ascii").split()):
                yield child
                yield from _descendants(child)


def _report_exit(vpc: VpcState, name: str, machine: RunningMachine) -> None:
    """Wait for a machine's exit, remove its links, and report the exit to all listeners."""
    code = machine.process.wait()
    for link in machine.links:
        with contextlib.suppress(OSError, subprocess.SubprocessError):  # the kernel may have removed it
            remove_link(link)
    with vpc.lock:
        del vpc.machines[name]
        listeners = list(vpc.listeners)
    line = json.dumps({"ended": name, "code": code}).encode() + b"\n"
    for listener in listeners:
        with contextlib.suppress(OSError):
            listener.sendall(line)
