"""Virtual machines as the box's instances: their disks are qcow2 files over Debian's image."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from socketserver import BaseServer
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

from corral.box.daemon.daemon_process import BoxError
from corral.box.machines.desired_machines import DesiredMachine
from corral.box.machines.machine_disks import MachineDisks
from corral.box.vm.debian_build import Image, Tools
from corral.box.vm.debian_mirrors import host_mirrors
from corral.box.vm.nfs_server import NfsExport, server_settings
from corral.box.vm.package_proxy import serve_packages
from corral.box.vm.qemu_command import Emulator, VirtualHardware, VirtualMachineSpec, qemu_command
from corral.box.vpc.virtual_network import MachineError, VirtualMachineStart, Vpc
from corral.box.vpc.vpc_state import PACKAGES_SOCKET
from corral.catalog.aws.images import VM_PROFILE
from corral.model.cache import cache_directory

MAX_VCPUS, MAX_MEMORY_MIB = 16, 32 * 1024  # of a machine; its memory is the host's as far as it is used
# A type with accelerators is posed by a small machine: Slurm takes its word (`render.host_conf`).
_POSED_VCPUS, _POSED_MEMORY_MIB = 2, 2048
_VOLUME_FILE = "disk.img"


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualSupport:
    """What virtual machines run with on this host."""

    tools: Tools
    image: Image
    accelerator: str


class VirtualHost:
    """Creates and starts such machines."""

    bootable_images = frozenset((VM_PROFILE,))
    is_virtual = True

    def __init__(self, disks: MachineDisks, support: VirtualSupport) -> None:
        self._disks = disks
        self._support = support
        self._key = disks.directory / "key"
        self._served: dict[Path, Mapping[str, str]] = {}
        self._without_mirror: set[tuple[Path, str]] = set()  # VPCs, and addresses of their machines

    def prepare(self) -> None:
        """Create the ssh key of the box's own commands in machines. Raises BoxError."""
        if not self._key.exists():
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "corral-box", "-f", str(self._key)]
            if subprocess.run(command, capture_output=True, check=False).returncode:
                raise BoxError("ssh-keygen not found, or it cannot write a key - install openssh-client")

    def create_disk(self, one: DesiredMachine) -> None:
        """Create the machine's disk, unless it exists, with the size of its root volume, and its instance stores.

        Raises MachineError.
        """
        disk = self._disks.disk(one.instance_id)
        if disk.exists():
            return
        _hardware(one, disk)  # first, so that no disk is left behind
        draft = disk.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        (self._disks.consoles / one.instance_id).touch()
        command = [*self._support.tools.program("qemu-img"), "create", "-q", "-f", "qcow2"]
        backing = ["-b", str(self._support.image.disk), "-F", "qcow2"]
        root = [str(draft / "root.qcow2"), f"{one.root_gib}G"]
        subprocess.run([*command, *backing, *root], check=True, capture_output=True)
        for number, size in enumerate(_store_sizes(one.instance_type)):
            _create_file(draft / f"store{number}.img", size)
        draft.rename(disk)

    def start(self, vpc: Vpc, one: DesiredMachine) -> None:
        """Start the machine. Raises MachineError."""
        known = (vpc.directory, str(one.address))
        (self._without_mirror.add if one.has_mirror_errors else self._without_mirror.discard)(known)
        disk, console = self._disks.disk(one.instance_id), self._disks.consoles / one.instance_id
        emulator = Emulator(
            program=self._support.tools.qemu(),
            accelerator=self._support.accelerator,
            kernel=self._support.image.kernel,
        )
        spec = VirtualMachineSpec(
            instance_id=one.instance_id,
            instance_type=one.instance_type,
            region=one.region,
            router=one.network[1],
            macs=tuple(one.cards),
            hardware=_hardware(one, disk),
            root_disk=disk / "root.qcow2",
            console=console,
            public_key=self._key.with_suffix(".pub").read_text(encoding="ascii"),
            devices=one.devices,
        )
        vpc.start_virtual(
            VirtualMachineStart(
                name=one.instance_id,
                cards=one.cards,
                directory=disk,
                command=qemu_command(spec, emulator),
                environment=self._support.tools.environment,
                key=self._key,
                boot_wait=one.boot_wait,
                volumes={volume: self.volume(volume, size) for volume, size in one.volumes.items()},
                watched_console=console if emulator.accelerator == "tcg" else None,
            )
        )

    def start_servers(self, directory: Path) -> Sequence[BaseServer]:
        """Start the package mirror of a VPC with its sockets in this directory."""
        cache = cache_directory(os.environ) / "vm" / "packages"
        cache.mkdir(parents=True, exist_ok=True)

        def refuses(address: str, _url: str) -> bool:
            return (directory, address) in self._without_mirror

        server = serve_packages(directory / PACKAGES_SOCKET, host_mirrors(), cache, refuses=refuses)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return (server,)

    def volume(self, volume_id: str, size_gib: int) -> Path:
        """The file of a volume of this id and size. Creates it."""
        file = self._disks.volume(volume_id) / _VOLUME_FILE
        if not file.exists():
            _create_file(file, size_gib)
        return file

    def serve_file_systems(self, vpc: Vpc, targets: Mapping[str, str]) -> None:
        """Serve the file systems of these mount targets in the VPC by NFS. `targets`: their ids by address."""
        if self._served.get(vpc.directory, {}) == targets:
            return
        for address, file_system in targets.items():
            directory = self._disks.file_systems / file_system
            directory.mkdir(exist_ok=True)
            state = self._disks.directory / "nfs" / address
            state.mkdir(parents=True, exist_ok=True)
            export = NfsExport(address=address, directory=directory, state=state, tools=self._support.tools.root)
            (state / "ganesha.conf").write_text(server_settings(export), encoding="utf-8")
            options = ("-F", "-L", str(state / "log"), "-f", str(state / "ganesha.conf"), "-p", str(state / "pid"))
            command = (*self._support.tools.program("ganesha.nfsd"), *options, "-N", "NIV_EVENT")
            vpc.serve(address, command, self._support.tools.environment)
        self._served[vpc.directory] = targets


def _hardware(one: DesiredMachine, disk: Path) -> VirtualHardware:
    """The hardware of the machine's type, with the files of its instance stores. Raises MachineError."""
    facts: Mapping[str, Any] = INSTANCE_TYPES[one.instance_type]
    vcpus, memory = facts["VCpuInfo"]["DefaultVCpus"], facts["MemoryInfo"]["SizeInMiB"]
    if one.devices:
        vcpus, memory = min(vcpus, _POSED_VCPUS), min(memory, _POSED_MEMORY_MIB)
    if vcpus > MAX_VCPUS or memory > MAX_MEMORY_MIB:
        raise MachineError(
            f"{one.instance_type} has {vcpus} vCPUs and {memory >> 10} GiB; virtual machines of the box have up to"
            f" {MAX_VCPUS} and {MAX_MEMORY_MIB >> 10} GiB - choose a smaller type, or `--machines namespace`"
        )
    stores = sorted(disk.glob("store*.img"))
    return VirtualHardware(
        vcpus=vcpus, threads=facts["VCpuInfo"].get("DefaultThreadsPerCore", 1), memory_mib=memory, stores=tuple(stores)
    )


def _store_sizes(instance_type: str) -> list[int]:
    """The sizes of the type's instance stores in GiB."""
    rows = INSTANCE_TYPES[instance_type].get("InstanceStorageInfo", {}).get("Disks", ())
    return [int(row["SizeInGB"]) for row in rows for _ in range(row["Count"])]


def _create_file(path: Path, size_gib: int) -> None:
    """A file of this size that takes no space yet."""
    path.touch()
    os.truncate(path, size_gib << 30)
