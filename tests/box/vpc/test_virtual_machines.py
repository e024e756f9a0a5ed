"""A VPC whose machines are virtual: its bridge, servers and QEMU's monitor, without QEMU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path
from typing import Any

import pytest

from corral.box.vpc import virtual_machines
from corral.box.vpc.capabilities import is_in_initial_user_namespace, probe_host
from corral.box.vpc.virtual_machines import VirtualMachine
from corral.box.vpc.virtual_network import MachineError, VirtualMachineStart, Vpc, VpcProcess, start_vpc

pytestmark = pytest.mark.box
QEMU = Path(__file__).parents[1] / "qemu_fixture.py"
NETWORK, ADDRESS, MAC = IPv4Network("10.64.0.0/16"), IPv4Interface("10.64.1.11/24"), "02:01:0a:40:01:0b"
OTHER_MAC, OTHER = "02:01:0a:40:02:0c", IPv4Interface("10.64.2.12/24")
CARDS = {MAC: ADDRESS, OTHER_MAC: OTHER}
IS_ROOT_OF_HOST = os.geteuid() == 0 and is_in_initial_user_namespace()
IN_S = 60  # many times what anything here takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine that can be started, and the files of its QEMU. `directory`: theirs."""

    process: VpcProcess
    directory: Path

    @property
    def vpc(self) -> Vpc:
        return self.process.vpc

    def start(
        self,
        boot_wait: str = "infinity",
        volumes: tuple[str, ...] = (),
        program: str = sys.executable,
        console: Path | None = None,
    ) -> None:
        files = {label: self.volume(label) for label in volumes}
        self.vpc.start_virtual(
            VirtualMachineStart(
                name="one",
                cards=CARDS,
                directory=self.directory,
                command=(program, str(QEMU), str(self.directory), "{link0}", "{monitor}", "ifname={link1}"),
                environment={"PATH": "/usr/bin:/bin"},
                key=self.directory / "key",
                boot_wait=boot_wait,
                volumes=files,
                watched_console=console,
            )
        )

    def volume(self, label: str) -> Path:
        """The file of a volume."""
        (self.directory / label).touch()
        return self.directory / label

    @property
    def arguments(self) -> list[str]:
        """QEMU's arguments after its own name."""
        return list(json.loads((self.directory / "arguments").read_text()))

    def commands(self) -> list[dict[str, Any]]:
        """The monitor's commands, without the first one of each connection."""
        lines = (self.directory / "commands").read_text().splitlines()
        return [one for one in map(json.loads, lines) if one["execute"] != "qmp_capabilities"]

    def names(self) -> list[str]:
        return [command["execute"] for command in self.commands()]

    def ports(self) -> list[tuple[str, str]]:
        """The ports of disks that were plugged, in order."""
        added = [one["arguments"] for one in self.commands() if one["execute"] == "device_add"]
        return [(one["id"], one["bus"]) for one in added]

    def pid(self) -> int:
        """The process of its QEMU, on the host."""
        (found,) = [pid for pid in processes() if str(self.directory) in command_line(pid)]
        return found

    def in_vpc(self, *command: str) -> str:
        """The output of a command in the VPC's network."""
        (pid,) = [pid for pid in processes() if is_first(pid, self.vpc.directory)]
        users = ["--user", "--preserve-credentials"] if probe_host().user_namespace_options else []
        prefix = ["nsenter", f"--target={pid}", *users, "--net"]
        return subprocess.run([*prefix, *command], capture_output=True, check=True, text=True).stdout

    def link(self) -> Mapping[str, Any]:
        """The bridge's port of the machine."""
        found = [one for one in json.loads(self.in_vpc("bridge", "-json", "link", "show")) if one["ifname"] == "v1"]
        return dict(found[0]) if found else {}


def processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def command_line(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:  # it has ended meanwhile
        return []


def is_first(pid: int, directory: Path) -> bool:
    """Whether a process is the first one in the namespaces of the VPC in this directory."""
    words = command_line(pid)
    return "corral.box.vpc.namespace_init" in words[:4] and str(directory) in words


def until(found: Callable[[], bool]) -> bool:
    """Whether it becomes true in time."""
    deadline = time.monotonic() + IN_S
    while not found() and time.monotonic() < deadline:
        time.sleep(0.05)
    return found()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    assert probe_host().users, probe_host().problem
    with tempfile.TemporaryDirectory(prefix="corral-") as sockets:
        process = start_vpc(Path(sockets), NETWORK, probe_host(), is_virtual=True)
        try:
            yield Machine(process=process, directory=tmp_path)
        finally:
            process.close()


def test_command_gets_its_tap_and_its_monitor(machine: Machine) -> None:
    machine.start()
    assert machine.arguments[:3] == ["v1", f"{machine.vpc.directory}/one.qmp", "ifname=v2"]


def test_qemu_of_the_hosts_root_runs_as_another_user(machine: Machine) -> None:
    machine.start()
    assert machine.arguments[3:] == (["-run-with", "user=1879048192:1879048192"] if IS_ROOT_OF_HOST else [])


def test_tap_is_a_port_of_the_bridge(machine: Machine) -> None:
    machine.start()
    (link,) = json.loads(machine.in_vpc("ip", "-json", "-details", "link", "show", "v1"))
    assert (link["master"], link["linkinfo"]["info_data"]["type"]) == ("br0", "tap")


def test_each_card_has_its_tap(machine: Machine) -> None:
    machine.start()
    ports = json.loads(machine.in_vpc("bridge", "-json", "link", "show"))
    assert [port["ifname"] for port in ports] == ["v1", "v2"]


def test_bridge_knows_the_machines_mac_address(machine: Machine) -> None:
    machine.start()
    assert machine.in_vpc("ip", "neigh", "show", str(ADDRESS.ip)) == f"{ADDRESS.ip} dev br0 lladdr {MAC} PERMANENT \n"


def test_bridge_knows_the_mac_address_of_the_second_card(machine: Machine) -> None:
    machine.start()
    assert machine.in_vpc("ip", "neigh", "show", str(OTHER.ip)) == f"{OTHER.ip} dev br0 lladdr {OTHER_MAC} PERMANENT \n"


def test_bridge_is_the_router_of_each_cards_subnet(machine: Machine) -> None:
    machine.start()
    (bridge,) = json.loads(machine.in_vpc("ip", "-json", "-4", "address", "show", "br0"))
    assert {"10.64.1.1", "10.64.2.1"} <= {one["local"] for one in bridge["addr_info"]}


def test_router_sends_no_redirects(machine: Machine) -> None:
    names = ("net.ipv4.conf.all.send_redirects", "net.ipv4.conf.br0.send_redirects")
    assert machine.in_vpc("sysctl", "-n", *names) == "0\n0\n"


def test_started_machine_is_listed_with_its_address(machine: Machine) -> None:
    machine.start()
    assert machine.vpc.machines() == {"one": ADDRESS.ip}


def test_volumes_are_plugged_before_the_machine_boots(machine: Machine) -> None:
    machine.start("0", ("vol-0a", "vol-0b"))
    until(lambda: "cont" in machine.names())
    plug = ["add-fd", "blockdev-add", "device_add"]
    assert machine.names() == [*plug, *plug, "cont"]


def test_machine_boots_after_its_wait(machine: Machine) -> None:
    began = time.monotonic()
    machine.start("1.5")
    until(lambda: "cont" in machine.names())
    assert time.monotonic() - began >= 1.5


def test_machine_that_waits_forever_never_boots(machine: Machine) -> None:
    machine.start("infinity")
    machine.vpc.attach_volume("one", "vol-0a", machine.volume("vol-0a"))  # commands still get through
    time.sleep(0.5)
    assert machine.names() == ["add-fd", "blockdev-add", "device_add"]


def test_volume_is_an_nvme_disk_of_the_passed_file(machine: Machine) -> None:
    machine.start(volumes=("vol-0a",))
    file, block, device = machine.commands()
    assert (file["file"], file["arguments"], block["arguments"], device["arguments"]) == (
        str(machine.directory / "vol-0a"),
        {"fdset-id": 1},
        {
            "driver": "raw",
            "node-name": "disk-vol-0a",
            "discard": "unmap",
            "file": {"driver": "file", "filename": "/dev/fdset/1", "discard": "unmap"},
        },
        {"driver": "nvme", "id": "vol-0a", "serial": "vol0a", "drive": "disk-vol-0a", "bus": "slot0"},
    )


def test_volume_attached_twice_is_plugged_once(machine: Machine) -> None:
    machine.start(volumes=("vol-0a",))
    for _ in range(2):
        machine.vpc.attach_volume("one", "vol-0a", machine.volume("vol-0a"))
    assert machine.ports() == [("vol-0a", "slot0")]


def test_ninth_volume_is_refused(machine: Machine) -> None:
    machine.start(volumes=tuple(f"vol-{number}" for number in range(8)))
    with pytest.raises(MachineError, match="a machine of the box has 8 volumes at most"):
        machine.vpc.attach_volume("one", "vol-8", machine.volume("vol-8"))


@pytest.mark.parametrize("refusals", [0, 1])
def test_detached_volume_frees_its_port_once_its_disk_is_closed(machine: Machine, refusals: int) -> None:
    (machine.directory / "busy").write_text(str(refusals))
    machine.start(volumes=("vol-0a",))
    machine.vpc.detach_volume("one", "vol-0a")
    until(lambda: machine.names().count("blockdev-del") == refusals + 1)
    time.sleep(0.2)  # it frees the port after the answer
    machine.vpc.attach_volume("one", "vol-0b", machine.volume("vol-0b"))
    assert machine.ports() == [("vol-0a", "slot0"), ("vol-0b", "slot0")]


def test_port_of_a_disk_in_use_is_not_reused(machine: Machine) -> None:
    (machine.directory / "busy").write_text("1000")
    machine.start(volumes=("vol-0a",))
    machine.vpc.detach_volume("one", "vol-0a")
    machine.vpc.attach_volume("one", "vol-0b", machine.volume("vol-0b"))
    assert machine.ports() == [("vol-0a", "slot0"), ("vol-0b", "slot1")]


def test_volume_of_an_ended_machine_can_be_detached(machine: Machine) -> None:
    machine.start(volumes=("vol-0a",))
    machine.vpc.kill("one")
    until(lambda: not machine.vpc.machines())
    machine.vpc.detach_volume("one", "vol-0a")
    assert "device_del" not in machine.names()


def test_qemu_that_ends_at_once_is_an_error_with_its_last_line(machine: Machine) -> None:
    (machine.directory / "end").write_text("qemu: some warning\nqemu: Could not open 'root.qcow2'\n")
    with pytest.raises(MachineError, match=r"QEMU does not start: qemu: Could not open 'root.qcow2'$"):
        machine.start()


def test_qemu_that_ends_at_once_leaves_no_machine_and_no_link(machine: Machine) -> None:
    (machine.directory / "end").write_text("no\n")
    with pytest.raises(MachineError):
        machine.start()
    assert (machine.vpc.machines(), machine.link()) == ({}, {})


def test_machine_whose_qemu_ended_at_once_can_be_started_again(machine: Machine) -> None:
    (machine.directory / "end").write_text("no\n")
    with pytest.raises(MachineError):
        machine.start()
    (machine.directory / "end").unlink()
    machine.start()
    assert machine.vpc.machines() == {"one": ADDRESS.ip}


def test_qemu_that_is_missing_leaves_no_link(machine: Machine) -> None:
    with pytest.raises(MachineError, match="No such file or directory: '/missing'"):
        machine.start(program="/missing")
    assert machine.link() == {}


def test_shutdown_presses_the_power_button(machine: Machine) -> None:
    machine.start("0")
    until(lambda: "cont" in machine.names())
    machine.vpc.shut_down("one")
    assert (machine.names()[-1], machine.vpc.machines()) == ("system_powerdown", {"one": ADDRESS.ip})


def test_machine_that_has_not_begun_to_boot_is_killed_instead(machine: Machine) -> None:
    machine.start("infinity")
    machine.vpc.shut_down("one")
    assert until(lambda: not machine.vpc.machines())


def test_emulated_kernel_that_stands_still_is_reset_once(machine: Machine, tmp_path: Path) -> None:
    console = tmp_path / "console"
    console.write_text("Linux version 6.12\nrcu: INFO: rcu_preempt detected stalls on CPUs/tasks:\n")
    machine.start("0", console=console)
    until(lambda: "system_reset" in machine.names())
    time.sleep(11)  # longer than between two looks
    assert machine.names().count("system_reset") == 1


def test_machine_that_does_not_power_off_in_time_is_killed(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.start("0")
    until(lambda: "cont" in machine.names())
    monkeypatch.setattr(virtual_machines, "_SHUT_DOWN_S", 0.1)
    process = subprocess.Popen(["sleep", "600"])
    running = VirtualMachine(
        process=process,
        pid=process.pid,
        links=(),
        address=str(ADDRESS.ip),
        monitor=machine.vpc.directory / "one.qmp",
        key=tmp_path,
    )
    running.boots.set()
    virtual_machines.shut_down(running)
    assert process.wait(IN_S) == -signal.SIGKILL


def test_end_of_a_killed_machine_is_reported(machine: Machine) -> None:
    machine.start()
    ends = machine.vpc.watch_exits()
    machine.vpc.kill("one")
    assert next(ends) == "one"


def test_end_of_a_machine_that_powers_off_is_reported(machine: Machine) -> None:
    machine.start()
    ends = machine.vpc.watch_exits()
    os.kill(machine.pid(), signal.SIGTERM)
    assert next(ends) == "one"


def test_killed_machine_leaves_no_link(machine: Machine) -> None:
    machine.start()
    machine.vpc.kill("one")
    until(lambda: not machine.vpc.machines())
    assert machine.link() == {}


def test_rebooted_machine_gets_a_new_link(machine: Machine) -> None:
    machine.start()
    machine.vpc.kill("one")
    until(lambda: not machine.vpc.machines())
    machine.start()
    assert machine.arguments[0] == "v3"


def test_second_machine_of_the_same_name_is_refused(machine: Machine) -> None:
    machine.start()
    with pytest.raises(MachineError, match="machine 'one' already runs"):
        machine.start()


def state_of(pid: int) -> str:
    """The state of a process: S sleeps, T is stopped. Source: proc_pid_stat(5)."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_frozen_machine_stands_still_until_it_is_thawed(machine: Machine) -> None:
    machine.start()
    machine.vpc.freeze("one")
    frozen = until(lambda: state_of(machine.pid()) == "T")
    machine.vpc.thaw("one")
    assert (frozen, until(lambda: state_of(machine.pid()) == "S")) == (True, True)


def test_disconnected_machine_has_a_disabled_port_until_it_reconnects(machine: Machine) -> None:
    machine.start()
    machine.vpc.disconnect("one")
    cut = machine.link()["state"]
    machine.vpc.reconnect("one")
    # The kernel tells the bridge of the carrier up to a second later, if many links change.
    assert (cut, until(lambda: machine.link()["state"] == "forwarding")) == ("disabled", True)


def test_vpc_gives_the_machine_its_address_by_dhcp(machine: Machine) -> None:
    """A client of the system, with the machine's MAC address on a link of the bridge."""
    machine.start()
    client = "ip link set eth0 address $0 up; exec udhcpc -f -n -q -i eth0 -t 10 -T 1 -s /bin/true 2>&1"
    with subprocess.Popen(
        ["unshare", "--net", "sh", "-c", f"echo ready; read -r linked; {client}", MAC],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        process.stdout.readline()
        machine.in_vpc("ip", "link", "add", "client", "type", "veth", "peer", "name", "eth0", "netns", str(process.pid))
        machine.in_vpc("ip", "link", "set", "client", "master", "br0", "up")
        output = process.communicate("linked\n")[0]
    assert "lease of 10.64.1.11 obtained from 10.64.1.1" in output


def servers(machine: Machine) -> list[int]:
    return [pid for pid in processes() if str(machine.directory / "served") in command_line(pid)]


def serve(machine: Machine) -> None:
    """Run a server at an address of its own, and wait until it listens there."""
    program = "import socket, sys, time; s = socket.create_server((sys.argv[2], 2049)); time.sleep(600)"
    command = [sys.executable, "-c", program, str(machine.directory / "served"), "10.64.1.77"]
    machine.vpc.serve("10.64.1.77", command, {"PATH": "/usr/bin:/bin"})
    assert until(lambda: "10.64.1.77:2049" in machine.in_vpc("ss", "-ltnH") and servers(machine) != [])


def test_server_has_an_address_of_its_own(machine: Machine) -> None:
    serve(machine)
    assert "10.64.1.77:2049" in machine.in_vpc("ss", "-ltnH")


def test_server_that_runs_is_not_started_again(machine: Machine) -> None:
    serve(machine)
    first = servers(machine)
    serve(machine)
    assert (len(first), servers(machine)) == (1, first)


def test_server_that_has_ended_is_started_again(machine: Machine) -> None:
    serve(machine)
    (first,) = servers(machine)
    os.kill(first, signal.SIGKILL)
    until(lambda: not servers(machine))
    serve(machine)
    assert len(servers(machine)) == 1
