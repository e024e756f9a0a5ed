"""Machines that are virtual: QEMU with a tap on the VPC's bridge, and volumes as NVMe disks.

The daemon makes QEMU's command line (`corral.box.vm.qemu_command`); this module adds what only the VPC knows. Commands
run over ssh as root, with a key that the machine gets from its firmware.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

from corral.box.vpc.boot_watch import watch_boots
from corral.box.vpc.bridge import add_address, add_tap, block_ports, open_ports, remove_link
from corral.box.vpc.dhcp import DhcpSettings, Lease, serve_dhcp
from corral.box.vpc.machine_users import FIRST_UID
from corral.box.vpc.qmp import QmpCommand, QmpError, execute
from corral.box.vpc.relay import PACKAGES, relay_to_daemon
from corral.box.vpc.running_machines import add_machine
from corral.box.vpc.vpc_state import PACKAGES_SOCKET, Request, RunningMachine, VpcState

SLOTS = 8  # for volumes, on PCI Express ports that `qemu_command` creates
_DOMAIN = "ec2.internal"
# EC2's router tells no machine of a shorter way, and there is none on EC2.
_ROUTING = {"ip_forward": "1", "conf/all/send_redirects": "0", "conf/br0/send_redirects": "0"}
_MONITOR_S = 30  # until QEMU has opened its disks
_STEP_S = 0.02
# EC2 waits a few minutes. Source: EC2 User Guide, "Reboot your Amazon EC2 instance"; "How instance stop works".
_SHUT_DOWN_S = 240.0
_RELEASE_STEP_S = 1.0
_FOREVER = "infinity"  # as sleep(1) has it
_SSH = (
    *("ssh", "-q", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes"),
    *("-o", "ConnectTimeout=30", "-o", "LogLevel=ERROR"),
    # One connection for many commands: each login costs an emulated machine ten seconds. It ends with the machine.
    *("-o", "ControlMaster=auto", "-o", "ControlPersist=60"),
    *("-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=8"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualMachine(RunningMachine):
    """A running virtual machine. `pid` is QEMU's. `slots`: the PCI Express ports of its volumes, by label.

    `boots`: set once its processors run.
    """

    monitor: Path
    key: Path
    slots: dict[str, int] = field(default_factory=dict)
    boots: threading.Event = field(default_factory=threading.Event)


def prepare(vpc: VpcState) -> None:
    """Serve DHCP and the package mirror in the VPC, and route between its subnets."""
    for name, value in _ROUTING.items():
        Path("/proc/sys/net/ipv4", name).write_text(value, encoding="ascii")
    settings = DhcpSettings(resolver=IPv4Address(vpc.resolver), domain_name=_DOMAIN)
    threading.Thread(target=serve_dhcp, args=("br0", settings, vpc.leases), daemon=True).start()
    listener = socket.create_server((vpc.router, PACKAGES), backlog=64)
    threading.Thread(target=_serve_packages, args=(vpc, listener), daemon=True).start()


def start_machine(vpc: VpcState, request: Request) -> None:
    """Start a machine: create its taps, start QEMU, plug the volumes, and let it boot after `boot_wait` seconds."""
    name = request["name"]
    cards = {mac: IPv4Interface(address) for mac, address in request["cards"].items()}
    links = vpc.new_links(name, len(cards))
    monitor = vpc.directory / f"{name}.qmp"
    monitor.unlink(missing_ok=True)
    for link, (mac, address) in zip(links, cards.items(), strict=True):
        lease = Lease(address=address, host_name=f"ip-{str(address.ip).replace('.', '-')}")
        add_address(vpc, str(lease.router))
        add_tap(link, str(address.ip), mac, os.geteuid())
        vpc.leases[mac] = lease
    values = {"monitor": str(monitor), **{f"link{number}": link for number, link in enumerate(links)}}
    command = [_filled(part, values) for part in request["command"]]
    if vpc.users is not None:  # QEMU opens its files as root, and then has no rights on the host
        command += ["-run-with", f"user={FIRST_UID}:{FIRST_UID}"]
    log = Path(request["directory"]) / "qemu.log"
    with contextlib.ExitStack() as undo:  # no half-started machines
        for link in links:
            undo.callback(remove_link, link)
        process = _start_qemu(command, request["environment"], log)
        undo.callback(_kill, process)
        machine = VirtualMachine(
            process=process,
            pid=process.pid,
            links=links,
            address=str(next(iter(cards.values())).ip),
            monitor=monitor,
            key=Path(request["key"]),
        )
        _await_monitor(machine, log)
        for label, source in request["volumes"].items():
            _plug(machine, label, source)
        undo.pop_all()
    add_machine(vpc, name, machine)
    if console := request["watched_console"]:
        threading.Thread(target=watch_boots, args=(process, monitor, Path(console)), daemon=True).start()
    if request["boot_wait"] != _FOREVER:
        threading.Timer(float(request["boot_wait"]), _boot, (machine,)).start()


def start_command(
    vpc: VpcState, machine: RunningMachine, request: Request, descriptors: Sequence[int]
) -> subprocess.Popen[bytes]:
    """Start a command as root of a machine, with these descriptors as standard input, output and error."""
    assert isinstance(machine, VirtualMachine)
    stdin, stdout, stderr = descriptors
    terminal = ("-t",) if os.isatty(stdin) else ()
    settings = [f"{name}={value}" for name, value in _passed(request["environment"]).items()]
    command = shlex.join(["env", *settings, *request["command"]])
    shared = ("-o", f"ControlPath={machine.monitor.with_suffix('.ssh')}")
    return subprocess.Popen(
        [*_SSH, *shared, *terminal, "-i", str(machine.key), f"root@{machine.address}", command],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=not terminal,
    )


def shut_down(machine: RunningMachine) -> None:
    """Press the machine's power button, and kill it if it does not power off in time, or has not begun to boot."""
    assert isinstance(machine, VirtualMachine)
    if not machine.boots.is_set():
        machine.process.kill()
        return
    timer = threading.Timer(_SHUT_DOWN_S, machine.process.kill)
    timer.daemon = True
    timer.start()
    try:
        execute(machine.monitor, QmpCommand("system_powerdown"))
    except QmpError:  # it has ended meanwhile, or nothing works any more
        machine.process.kill()


def freeze(machine: RunningMachine) -> None:
    """Stop the machine's processors."""
    os.kill(machine.pid, signal.SIGSTOP)


def thaw(machine: RunningMachine) -> None:
    """Continue the machine's processors."""
    os.kill(machine.pid, signal.SIGCONT)


def disconnect(vpc: VpcState, machine: RunningMachine) -> None:
    """Drop all packets from and to the machine. Its card keeps its carrier, as if EC2 dropped the packets."""
    block_ports(machine.links)


def reconnect(machine: RunningMachine) -> None:
    """Undo `disconnect`."""
    open_ports(machine.links)


def attach_volume(vpc: VpcState, machine: str, label: str, source: str) -> None:
    """Plug a volume into a running machine, unless it is plugged."""
    found = vpc.machine(machine)
    assert isinstance(found, VirtualMachine)
    if label not in found.slots:
        _plug(found, label, source)


def detach_volume(vpc: VpcState, machine: str, label: str) -> None:
    """Unplug a volume, even if it is in use. An ended machine has none."""
    with vpc.lock:
        found = vpc.machines.get(machine)
    if isinstance(found, VirtualMachine) and label in found.slots:
        with contextlib.suppress(QmpError):  # it has ended meanwhile
            execute(found.monitor, QmpCommand("device_del", {"id": label}))
            threading.Thread(target=_release, args=(found, label), daemon=True).start()


def _release(machine: VirtualMachine, label: str) -> None:
    """Close a volume's file once the machine's kernel has let go of the disk, and free its port."""
    while machine.process.poll() is None:
        with contextlib.suppress(QmpError):
            execute(machine.monitor, QmpCommand("blockdev-del", {"node-name": _node_name(label)}))
            del machine.slots[label]
            return
        time.sleep(_RELEASE_STEP_S)


def _plug(machine: VirtualMachine, label: str, source: str) -> None:
    """Plug a file into a free port, as an NVMe disk whose serial number is the volume's id without its hyphen.

    Source: EBS User Guide, "Map Amazon EBS volumes to NVMe device names".
    """
    slot = next((slot for slot in range(SLOTS) if slot not in machine.slots.values()), None)
    if slot is None:
        raise ValueError(f"a machine of the box has {SLOTS} volumes at most")
    file = os.open(source, os.O_RDWR)
    try:
        at = f"/dev/fdset/{slot + 1}"  # QEMU may not open the path: it has no rights on the host
        block = {"driver": "raw", "node-name": _node_name(label), "discard": "unmap"}
        execute(
            machine.monitor,
            QmpCommand("add-fd", {"fdset-id": slot + 1}, file),
            QmpCommand("blockdev-add", {**block, "file": {"driver": "file", "filename": at, "discard": "unmap"}}),
            QmpCommand(
                "device_add",
                {
                    "driver": "nvme",
                    "id": label,
                    "serial": label.replace("-", ""),
                    "drive": block["node-name"],
                    "bus": f"slot{slot}",
                },
            ),
        )
    finally:
        os.close(file)
    machine.slots[label] = slot


def _start_qemu(command: Sequence[str], environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env=environment,
        )


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _filled(part: str, values: Mapping[str, str]) -> str:
    """A part of the command with the values of the names that stand in it in braces."""
    for name, value in values.items():
        part = part.replace(f"{{{name}}}", value)
    return part


def _node_name(label: str) -> str:
    return f"disk-{label}"[:31]  # QEMU's limit


def _await_monitor(machine: VirtualMachine, log: Path) -> None:
    deadline = time.monotonic() + _MONITOR_S
    while time.monotonic() < deadline:
        if machine.process.poll() is not None:
            output = log.read_text(encoding="utf-8", errors="replace").splitlines()[-1:]
            raise ValueError(f"QEMU does not start: {' '.join(output)}")
        with contextlib.suppress(QmpError):
            execute(machine.monitor)
            return
        time.sleep(_STEP_S)
    raise ValueError(f"QEMU does not answer within {_MONITOR_S} s")


def _boot(machine: VirtualMachine) -> None:
    machine.boots.set()
    with contextlib.suppress(QmpError):  # it has ended meanwhile
        execute(machine.monitor, QmpCommand("cont"))


def _serve_packages(vpc: VpcState, listener: socket.socket) -> None:
    while True:
        caller, peer = listener.accept()
        arguments = (vpc.directory, caller, peer, vpc.router, PACKAGES_SOCKET)
        threading.Thread(target=relay_to_daemon, args=arguments, daemon=True).start()


def _passed(environment: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in environment.items() if name != "PATH"}
