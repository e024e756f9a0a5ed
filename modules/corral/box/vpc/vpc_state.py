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

from corral.box.vpc.machine_users import MachineUsers

METADATA_ADDRESS = "169.254.169.254"
CONTROL_SOCKET, DAEMON_SOCKET = "control.sock", "daemon.sock"

Request = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceMachine:
    """A running machine. `process` waits for `pid`, the machine's first process, in this process's PID namespace."""

    process: subprocess.Popen[bytes]
    pid: int
    link: str
    address: str


@dataclass(slots=True, kw_only=True)
class VpcState:
    """The state of the VPC. `names`: addresses by DNS name. `volumes`: the attached volumes, by their links."""

    directory: Path
    network: IPv4Network
    users: MachineUsers | None = None  # if this process is the host's root
    machines: dict[str, NamespaceMachine] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    volumes: set[Path] = field(default_factory=set)
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

    def machine(self, name: str) -> NamespaceMachine:
        """The running machine of this name. Raises ValueError if there is none."""
        with self.lock:
            found = self.machines.get(name)
        if found is None:
            raise ValueError(f"no machine {name!r} runs")
        return found
