"""Machines in namespaces of their own: start a machine, run commands in it, signal all of its processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from corral.box.vpc.bridge import add_link, block_ports, open_ports, pin_neighbours, unpin_neighbours
from corral.box.vpc.machine_users import FIRST_UID, give_to_machines
from corral.box.vpc.running_machines import add_machine
from corral.box.vpc.volume_mounts import attach_volume as attach_volume
from corral.box.vpc.volume_mounts import detach_volume as detach_volume
from corral.box.vpc.volume_mounts import share_volume_directory, volume_directory
from corral.box.vpc.vpc_state import Request, RunningMachine, VpcState

_START_TIMEOUT_S = 30
_ROOT_SCRIPT, _SCRIPT = (str(Path(__file__).with_name(name)) for name in ("machine_root.sh", "machine.sh"))


def prepare(vpc: VpcState) -> None:
    """Prepare the VPC for volumes."""
    share_volume_directory(vpc)


def start_machine(vpc: VpcState, request: Request) -> None:
    """Start a machine with its own network, host name, processes, mounts, and a boot time of now.

    slurmctld considers a node booted only if its boot time is later than the request, so machines need their own clock.
    `unshare` takes whole seconds: a machine seems up to 1 s older than it is.
    """
    (link,) = vpc.new_links(request["name"])
    address = f"{request['address']}/{vpc.network.prefixlen}"
    volumes = f"{volume_directory(vpc, request['name'])}=/box/volumes"
    if vpc.users is not None:
        for path in (request["directory"], *(mount.partition("=")[0] for mount in (*request["mounts"], volumes))):
            give_to_machines(Path(path))
    age = int(time.clock_gettime(time.CLOCK_BOOTTIME))
    namespaces = ("--net", "--uts", "--ipc", "--mount", "--propagation=slave", "--pid", "--time")
    uid = "0" if vpc.users is None else str(FIRST_UID)
    with (Path(request["directory"]) / "console").open("ab") as console:
        process = subprocess.Popen(
            [
                *("unshare", "--mount", "--propagation=slave"),
                *(
                    "/bin/sh",
                    _ROOT_SCRIPT,
                    request["directory"],
                    request["system"],
                    uid,
                    *request["mounts"],
                    volumes,
                    "--",
                ),
                *(() if vpc.users is None else vpc.users.enter),
                *("unshare", *namespaces, "--fork", "--kill-child", f"--boottime=-{age}"),
                *("/bin/sh", _SCRIPT, request["host_name"], address, vpc.router, vpc.resolver, "--", *request["init"]),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=console,
            start_new_session=True,
            pass_fds=() if vpc.users is None else (vpc.users.descriptor,),
        )
    try:
        machine = _connect(process, link, request["address"])
    except BaseException:
        process.kill()  # no half-started machines
        raise
    add_machine(vpc, request["name"], machine)


def start_command(
    vpc: VpcState, machine: RunningMachine, request: Request, descriptors: Sequence[int]
) -> subprocess.Popen[bytes]:
    """Start a command in a machine, with these descriptors as standard input, output and error."""
    namespaces = ["--mount", "--net", "--uts", "--ipc", "--pid", "--time"]
    user = [] if _shares_user_namespace(machine.pid) else ["--user"]
    stdin, stdout, stderr = descriptors
    return subprocess.Popen(
        ["nsenter", f"--target={machine.pid}", *user, *namespaces, "--root", "--wd", "--", *request["command"]],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=request["environment"],
        start_new_session=True,
    )


def shut_down(machine: RunningMachine) -> None:
    """Kill the machine: its init is a script that has nothing to shut down."""
    os.kill(machine.pid, signal.SIGKILL)


def freeze(machine: RunningMachine) -> None:
    """Stop every process of a machine; its kernel still answers."""
    _signal_all(machine.pid, signal.SIGSTOP)


def thaw(machine: RunningMachine) -> None:
    """Continue the machine's processes."""
    _signal_all(machine.pid, signal.SIGCONT)


def disconnect(vpc: VpcState, machine: RunningMachine) -> None:
    """Drop all packets from and to the machine. Its card keeps its carrier, as if EC2 dropped the packets."""
    pin_neighbours(vpc, machine)
    block_ports(machine.links)


def reconnect(machine: RunningMachine) -> None:
    """Undo `disconnect`."""
    open_ports(machine.links)
    unpin_neighbours(machine)


def _signal_all(pid: int, number: signal.Signals) -> None:
    """Send a signal to every process in a machine's PID namespace, also to those that start meanwhile."""
    namespace = (Path("/proc") / str(pid) / "ns/pid").readlink()
    signalled: set[str] = set()
    while new := [
        entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit() and entry.name not in signalled
    ]:
        signalled.update(new)
        for name in new:
            with contextlib.suppress(OSError):  # the process has ended
                if Path("/proc", name, "ns/pid").readlink() == namespace:
                    os.kill(int(name), number)


def _connect(process: subprocess.Popen[bytes], link: str, address: str) -> RunningMachine:
    """Link the machine to the network. `machine.sh` reports when its namespaces exist, and when its network is up."""
    assert process.stdin is not None and process.stdout is not None
    if process.stdout.readline() != b"here\n":
        raise ValueError(f"its first process ended with {process.wait(_START_TIMEOUT_S)}, see its console")
    pid = _child(process.pid)
    add_link(link, address, process.pid)
    process.stdin.write(b"go\n")
    process.stdin.close()
    with process.stdout:
        if process.stdout.readline() != b"up\n":
            raise ValueError(f"its network does not start: it ended with {process.wait(_START_TIMEOUT_S)}")
    return RunningMachine(process=process, pid=pid, links=(link,), address=address)


def _child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()[0])


def _shares_user_namespace(pid: int) -> bool:
    return Path(f"/proc/{pid}/ns/user").readlink() == Path("/proc/self/ns/user").readlink()
