"""What a host of virtual machines gives each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from package_mirrors import CALLER, relay

from corral.box.machines.desired_machines import DesiredMachine
from corral.box.machines.machine_disks import MachineDisks
from corral.box.vm import virtual_host
from corral.box.vm.debian_build import Image, Tools
from corral.box.vm.debian_mirrors import DebianMirrors, Mirror
from corral.box.vm.virtual_host import VirtualHost, VirtualSupport
from corral.box.vpc.vpc_state import DAEMON_SOCKET, PACKAGES_SOCKET

NOWHERE = Mirror(url="http://127.0.0.1:9/debian")  # nobody listens there: what passes is a bad gateway
RELEASE = "http://deb.debian.org/debian/dists/trixie/Release"
MACHINE = DesiredMachine(
    instance_id="i-0123456789abcdef0",
    instance_type="c7i.large",
    region="us-east-1",
    vpc_id="vpc-0123",
    network=IPv4Network("10.64.0.0/16"),
    address=IPv4Address(CALLER),
    cards={"02:00:00:00:00:01": IPv4Interface(f"{CALLER}/24")},
    host_name="ip-10-64-1-7.ec2.internal",
    user_data=b"#!/bin/sh\n",
    root_gib=8,
    volumes={},
    devices=(),
    boot_wait="0",
    has_mirror_errors=True,
    reboots=0,
    is_node=True,
    is_frozen=False,
    is_disconnected=False,
)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VirtualHost:
    """A host whose Debian mirror does not answer."""
    monkeypatch.setattr(virtual_host, "host_mirrors", lambda: DebianMirrors(archive=NOWHERE, security=NOWHERE))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/qemu-system-x86_64").touch()
    disks = MachineDisks(tmp_path / "machines", ())
    disks.create_directories()
    (disks.directory / "key.pub").write_text("ssh-ed25519 AAAA box\n")
    support = VirtualSupport(tools=Tools(tmp_path), image=Image(tmp_path), accelerator="tcg")
    return VirtualHost(disks, support)


@pytest.fixture
def proxy(host: VirtualHost, tmp_path: Path) -> Iterator[str]:
    """The package mirror as the machine at CALLER reaches it."""
    (server,) = host.start_servers(tmp_path)
    (tmp_path / DAEMON_SOCKET).symlink_to(PACKAGES_SOCKET)  # where the relay of the tests connects
    with relay(tmp_path) as url:
        yield url
    server.shutdown()
    server.server_close()


def start(host: VirtualHost, machine: DesiredMachine, directory: Path) -> None:
    """Start a machine in a VPC that starts none."""
    host.start(cast(Any, SimpleNamespace(directory=directory, start_virtual=lambda start: None)), machine)


def command_of(host: VirtualHost, machine: DesiredMachine, directory: Path) -> list[str]:
    """QEMU's command line for a machine."""
    started: list[Any] = []
    host.start(cast(Any, SimpleNamespace(directory=directory, start_virtual=started.append)), machine)
    return list(started[0].command)


def status(proxy: str) -> int:
    """The status of a file of the mirror."""
    connection = HTTPConnection(urlsplit(proxy).netloc, timeout=20)
    connection.request("GET", RELEASE)
    return connection.getresponse().status


def test_a_machine_with_mirror_errors_reaches_no_mirror(host: VirtualHost, proxy: str, tmp_path: Path) -> None:
    start(host, MACHINE, tmp_path)
    assert status(proxy) == 503


def test_another_machine_at_its_address_reaches_the_mirror(host: VirtualHost, proxy: str, tmp_path: Path) -> None:
    start(host, MACHINE, tmp_path)
    start(host, replace(MACHINE, has_mirror_errors=False), tmp_path)
    assert status(proxy) == 502


def test_a_machine_of_another_vpc_reaches_the_mirror(host: VirtualHost, proxy: str, tmp_path: Path) -> None:
    start(host, MACHINE, tmp_path / "other")
    assert status(proxy) == 502


def test_small_machine_poses_as_a_type_with_accelerators(host: VirtualHost, tmp_path: Path) -> None:
    command = command_of(host, replace(MACHINE, instance_type="p4d.24xlarge", devices=("nvidia0",)), tmp_path)
    shape = command[command.index("-smp") + 1], command[command.index("-m") + 1]
    assert shape == ("2,sockets=1,cores=1,threads=2", "2048")
