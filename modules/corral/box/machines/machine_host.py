"""What the supervisor needs of a kind of machines: `namespace_host` and `corral.box.vm.virtual_host` implement it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from socketserver import BaseServer
from typing import Protocol

from corral.box.machines.desired_machines import DesiredMachine
from corral.box.vpc.virtual_network import Vpc


class MachineHost(Protocol):
    """Creates and starts machines of one kind. `bootable_images`: the profiles of images that they boot."""

    bootable_images: frozenset[str]
    is_virtual: bool

    def prepare(self) -> None:
        """Prepare what all machines share. Raises BoxError."""

    def create_disk(self, one: DesiredMachine) -> None:
        """Create the machine's disk, unless it exists. Raises UserDataError for unsupported user data."""

    def start(self, vpc: Vpc, one: DesiredMachine) -> None:
        """Start the machine. Raises MachineError."""

    def start_servers(self, directory: Path) -> Sequence[BaseServer]:
        """Start what machines of a VPC need besides its endpoint. `directory`: that of its sockets."""

    def volume(self, volume_id: str, size_gib: int) -> Path:
        """What a volume of this id and size holds. Creates it."""

    def serve_file_systems(self, vpc: Vpc, targets: Mapping[str, str]) -> None:
        """Serve the file systems of these mount targets in the VPC. `targets`: their ids by address."""
