"""The state of a VPC's process: its range, its running machines and its DNS names."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from corral.box.vpc.dhcp import Lease
from corral.box.vpc.machine_users import MachineUsers

METADATA_ADDRESS = "169.254.169.254"
CONTROL_SOCKET, DAEMON_SOCKET, PACKAGES_SOCKET = "control.sock", "daemon.sock", "packages.sock"

Request = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningMachine:
    """A running machine. `process` ends with it; a kill of `pid` ends it. `links`: its ports of the bridge."""

    process: subprocess.Popen[bytes]
    pid: int
    links: tuple[str, ...]
    address: str


@dataclass(slots=True, kw_only=True)
class VpcState:
    """The state of the VPC. `names`: addresses by DNS name. `volumes`: the attached volumes, by their links.

    `leases`: the addresses of virtual machines, by MAC address. `servers`: those at addresses of their own.
    """

    directory: Path
    network: IPv4Network
    users: MachineUsers | None = None  # if this process is the host's root
    machines: dict[str, RunningMachine] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    volumes: set[Path] = field(default_factory=set)
    leases: dict[str, Lease] = field(default_factory=dict)
    servers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    listeners: list[socket.socket] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    links: int = 0

    @property
    def router(self) -> str:
        """The address of the machines' default route. Source: VPC User Guide, "Subnet CIDR blocks" (the first one)."""
        return str(self.network.network_address + 1)

    @property
    def resolver(self) -> str:
        """The address of the VPC's resolver. Source: VPC User Guide, "Amazon DNS": the base of the range plus two."""
        return str(self.network.network_address + 2)

    def new_links(self, name: str, count: int = 1) -> tuple[str, ...]:
        """So many unused names of links, for a machine that starts. Raises ValueError if it runs."""
        with self.lock:
            if name in self.machines:
                raise ValueError(f"machine {name!r} already runs")
            self.links += count
            return tuple(f"v{number}" for number in range(self.links - count + 1, self.links + 1))

    def machine(self, name: str) -> RunningMachine:
        """The running machine of this name. Raises ValueError if there is none."""
        with self.lock:
            found = self.machines.get(name)
        if found is None:
            raise ValueError(f"no machine {name!r} runs")
        return found
