"""The command line of a machine's QEMU. Pure.

The machine is what an instance of the Nitro system is to its kernel, as far as QEMU has it: EBS volumes and instance
stores are NVMe disks, firmware tables name Amazon EC2, the serial port is the console. The network cards are virtio's,
since QEMU has no ENA.
Sources: QEMU's documentation, "Invocation" and "NVMe Emulation"; EC2 User Guide, "Identify EC2 instances";
systemd's documentation, systemd.system-credentials(7); cloud-init's documentation, "Amazon EC2" (platform detection).
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from corral.box.machines.aws_settings import aws_config, shell_profile
from corral.box.vm.accelerator_stand_ins import device_lines, tools
from corral.box.vpc.relay import PACKAGES
from corral.box.vpc.virtual_machines import SLOTS

ROOT_UUID = "5ca1ab1e-c0de-4b0c-a11e-c0117a1b0c0a"  # of the root partition in the image
_MACHINE_IDS = uuid.UUID("6b9a2f0e-5d1c-4f7a-9a53-0b8f0c2d4e61")


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualHardware:
    """What a machine has. `stores`: its instance stores, their files. `threads`: per core."""

    vcpus: int
    threads: int
    memory_mib: int
    stores: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualMachineSpec:
    """One machine. `root_disk`: a qcow2 file. `public_key`: that of its root, for the box's own commands.

    `devices`: the names of its accelerators' device files.
    """

    instance_id: str
    instance_type: str
    region: str
    router: IPv4Address
    macs: tuple[str, ...]
    hardware: VirtualHardware
    root_disk: Path
    console: Path
    public_key: str
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulator:
    """How to run QEMU on this host. `program`: the first words of its command line; `accelerator`: kvm or tcg."""

    program: tuple[str, ...]
    accelerator: str
    kernel: Path


def qemu_command(machine: VirtualMachineSpec, emulator: Emulator) -> tuple[str, ...]:
    """The command line, with {link0}, {link1} ... for the cards' taps, and {monitor} for the monitor's socket.

    The machine stands still until the monitor lets it run.
    """
    return (
        *emulator.program,
        *("-no-user-config", "-nodefaults", "-display", "none", "-S"),
        *("-name", machine.instance_id),
        *("-machine", MACHINE, "-accel", ACCELERATORS[emulator.accelerator], "-cpu", PROCESSORS[emulator.accelerator]),
        *("-smp", _processors(machine.hardware)),
        *("-m", str(machine.hardware.memory_mib)),
        *("-kernel", str(emulator.kernel), "-append", _KERNEL_OPTIONS),
        *_firmware(machine),
        *_disk("root", machine.root_disk, "qcow2", f"vol{machine.instance_id[2:]}", "bus=pcie.0,addr=4"),
        *(word for number, mac in enumerate(machine.macs) for word in _card(number, mac)),
        *("-device", "virtio-rng-pci"),
        *("-chardev", f"file,id=console,path={_quoted(machine.console)},append=on", "-serial", "chardev:console"),
        *("-qmp", "unix:{monitor},server=on,wait=off"),
        *(word for slot in range(SLOTS) for word in _port(slot)),
        *(
            word
            for number, file in enumerate(machine.hardware.stores)
            for word in _disk(f"store{number}", file, "raw", f"AWS{number:02}{machine.instance_id[-12:]}", "")
        ),
    )


MACHINE = "q35,sata=off,smbus=off,usb=off"  # without controllers that nothing uses, and a kernel waits for
# A stock kernel stops in QEMU's `max` processor under emulation; EPYC-v4 is one that EC2 has.
PROCESSORS = {"kvm": "host", "tcg": "EPYC-v4"}
ACCELERATORS = {"kvm": "kvm", "tcg": "tcg,thread=multi"}
# NVMe never times out, as in EC2's images (EBS User Guide, "NVMe I/O operation timeout").
_KERNEL_OPTIONS = f"root=PARTUUID={ROOT_UUID} rw console=ttyS0 nvme_core.io_timeout=4294967295 panic=-1"


def _card(number: int, mac: str) -> Iterator[str]:
    """A network card. The first one is at the address that is its name in every kernel: enp0s5."""
    yield from ("-netdev", f"tap,id=card{number},ifname={{link{number}}},script=no,downscript=no")
    at = f"bus=pcie.0,addr={5 if number == 0 else 0x10 + number:#x}"
    yield from ("-device", f"virtio-net-pci,netdev=card{number},mac={mac},{at},romfile=")


def _processors(hardware: VirtualHardware) -> str:
    threads = hardware.threads if hardware.vcpus % hardware.threads == 0 else 1
    return f"{hardware.vcpus},sockets=1,cores={hardware.vcpus // threads},threads={threads}"


def _firmware(machine: VirtualMachineSpec) -> Iterator[str]:
    """The tables of the firmware, and what the generic image reads from them: the box's addresses and root's key."""
    serial = f"ec2{uuid.uuid5(_MACHINE_IDS, machine.instance_id).hex[3:]}"
    identity = str(uuid.UUID(serial))
    maker = "manufacturer=Amazon EC2"
    yield from ("-smbios", "type=0,vendor=Amazon EC2,version=1.0")
    yield from ("-smbios", f"type=1,{maker},product={machine.instance_type},serial={identity},uuid={identity}")
    yield from ("-smbios", f"type=2,{maker},asset={machine.instance_id}")
    yield from ("-smbios", f"type=3,{maker},asset=Amazon EC2")
    for name, text in _credentials(machine).items():
        encoded = base64.b64encode(text.encode()).decode()
        yield from ("-smbios", f"type=11,value=io.systemd.credential.binary:{name}={encoded}")


def _credentials(machine: VirtualMachineSpec) -> Mapping[str, str]:
    proxy = f'Acquire::http::Proxy "http://{machine.router}:{PACKAGES}";\n'
    return {
        "tmpfiles.extra": "".join(
            (
                "d /root/.aws 0700 root root -\n",
                _file("/root/.aws/config", "0600", aws_config(machine.region, machine.router)),
                _file("/etc/profile.d/box.sh", "0644", shell_profile(machine.region, machine.router)),
                _file("/etc/apt/apt.conf.d/99box", "0644", proxy),
                *device_lines(machine.devices),
                *(_file(path, "0755", text) for path, text in tools(machine.devices)),
            )
        ),
        "ssh.authorized_keys.root": machine.public_key,
    }


def _file(path: str, mode: str, text: str) -> str:
    """A line of tmpfiles.d that writes a file, with base64 text (tmpfiles.d(5))."""
    return f"f~ {path} {mode} root root - {base64.b64encode(text.encode()).decode()}\n"


def _disk(name: str, file: Path, format: str, serial: str, at: str) -> Iterator[str]:
    """An NVMe disk. Nothing is forced to the host's disk: a machine's data need not survive the host's power."""
    yield from (
        "-drive",
        f"file={_quoted(file)},if=none,id={name},format={format},discard=unmap,cache=unsafe,aio=threads",
    )
    yield from ("-device", ",".join(filter(None, (f"nvme,drive={name},serial={serial[:20]}", at))))


def _quoted(path: Path) -> str:
    """A path as a value among options, which commas separate."""
    return str(path).replace(",", ",,")


def _port(slot: int) -> tuple[str, str]:
    return "-device", f"pcie-root-port,id=slot{slot},chassis={slot + 1},slot={slot + 1}"
