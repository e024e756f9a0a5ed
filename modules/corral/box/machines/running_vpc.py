"""A running VPC: its process, the server of its endpoint, and the faults and volumes of its machines."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from socketserver import BaseServer

from corral.box.machines.desired_machines import DesiredMachine
from corral.box.machines.imds import InstanceMetadata, MetadataService
from corral.box.machines.machine_host import MachineHost
from corral.box.machines.vpc_endpoint import Application, serve_vpc
from corral.box.vpc.capabilities import HostSupport
from corral.box.vpc.virtual_network import MachineError, Vpc, VpcProcess, start_vpc


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningVpc:
    """A running VPC. `volumes`: attached volumes by machine. `listeners`: targets by listener of a load balancer.

    `frozen`, `disconnected`: machines with such a fault.
    """

    region: str
    process: VpcProcess
    servers: Sequence[BaseServer]
    volumes: dict[str, set[str]] = field(default_factory=dict)
    listeners: dict[str, Sequence[str]] = field(default_factory=dict)
    frozen: set[str] = field(default_factory=set)
    disconnected: set[str] = field(default_factory=set)

    @property
    def vpc(self) -> Vpc:
        """The VPC itself."""
        return self.process.vpc

    def is_running(self) -> bool:
        """False once its process has ended."""
        return self.process.is_running()

    def await_end(self) -> None:
        """Wait until its process has ended."""
        self.process.process.wait()

    def set_listeners(self, wanted: Mapping[str, Sequence[str]]) -> None:
        """Let the load balancers' listeners be these: their targets by address and port. Raises MachineError."""
        if wanted != self.listeners:
            self.vpc.set_listeners(wanted)
            self.listeners.clear()
            self.listeners.update(wanted)

    def apply_faults(self, one: DesiredMachine) -> None:
        """Freeze or disconnect a machine, or undo that."""
        name = one.instance_id
        with contextlib.suppress(MachineError):  # it has exited meanwhile
            if one.is_frozen != (name in self.frozen):
                (self.vpc.freeze if one.is_frozen else self.vpc.thaw)(name)
                (self.frozen.add if one.is_frozen else self.frozen.discard)(name)
            if one.is_disconnected != (name in self.disconnected):
                (self.vpc.disconnect if one.is_disconnected else self.vpc.reconnect)(name)
                (self.disconnected.add if one.is_disconnected else self.disconnected.discard)(name)

    def forget_faults(self, name: str) -> None:
        """Forget the faults of an ended machine."""
        self.frozen.discard(name)
        self.disconnected.discard(name)

    def attach_volumes(self, name: str, wanted: Mapping[str, int], create: Callable[[str, int], Path]) -> None:
        """Attach and detach volumes so that the machine has the wanted ones: their sizes in GiB, by id.

        `create`: returns what a volume of an id and size holds.
        """
        attached = self.volumes.setdefault(name, set())
        for volume in sorted(wanted.keys() - attached):
            self.vpc.attach_volume(name, volume, create(volume, wanted[volume]))
            attached.add(volume)
        for volume in sorted(attached - wanted.keys()):
            self.vpc.detach_volume(name, volume)
            attached.discard(volume)
        if not attached:
            del self.volumes[name]

    def close(self) -> None:
        """Kill its machines and itself, as a power cut does."""
        self.process.close()
        for server in self.servers:
            server.shutdown()
            server.server_close()


def open_vpc(
    sockets: Path,
    one: DesiredMachine,
    support: HostSupport,
    find_metadata: Callable[[str], InstanceMetadata | None],
    app: Application,
    host: MachineHost,
) -> RunningVpc:
    """Start the VPC of a machine with its endpoint. `sockets`: its directory, whose path must be short.

    `host`: the kind of its machines. Raises MachineError and OSError.
    """
    process = start_vpc(sockets, one.network, support, is_virtual=host.is_virtual)
    server = serve_vpc(sockets, MetadataService(find=find_metadata), app)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return RunningVpc(region=one.region, process=process, servers=(server, *host.start_servers(sockets)))
