"""The command line of a machine's QEMU: what the machine's kernel and its programs find."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import IPv4Address
from itertools import pairwise
from pathlib import Path

import pytest

from corral.box.vm.qemu_command import Emulator, VirtualHardware, VirtualMachineSpec, qemu_command

KEY = "ssh-ed25519 AAAAC3Nz corral-box\n"
EMULATOR = Emulator(program=("/tools/ld.so", "/tools/qemu"), accelerator="kvm", kernel=Path("/image/vmlinuz"))
MACHINE = VirtualMachineSpec(
    instance_id="i-0123456789abcdef0",
    instance_type="m6id.xlarge",
    region="us-east-1",
    router=IPv4Address("10.64.0.1"),
    macs=("02:01:0a:40:01:0b",),
    hardware=VirtualHardware(
        vcpus=4, threads=2, memory_mib=16384, stores=(Path("/disk/store0.img"), Path("/disk/store1.img"))
    ),
    root_disk=Path("/disk/root.qcow2"),
    console=Path("/consoles/i-0123456789abcdef0"),
    public_key=KEY,
)
COMMAND = qemu_command(MACHINE, EMULATOR)


def values(option: str, command: tuple[str, ...] = COMMAND) -> list[str]:
    """The values of an option, in order."""
    return [value for name, value in pairwise(command) if name == option]


def devices(driver: str) -> list[str]:
    return [value for value in values("-device") if value.startswith(f"{driver},")]


def serial_numbers(command: tuple[str, ...]) -> list[str]:
    found = [value for value in values("-device", command) if value.startswith("nvme,")]
    return [field.removeprefix("serial=") for value in found for field in value.split(",") if "serial=" in field]


def table(kind: int, machine: VirtualMachineSpec = MACHINE) -> Mapping[str, str]:
    """The fields of the first firmware table of this type."""
    found = values("-smbios", qemu_command(machine, EMULATOR))
    (text, *_) = [value.removeprefix(f"type={kind},") for value in found if value.startswith(f"type={kind},")]
    return dict(field.split("=", 1) for field in text.split(","))


def credentials() -> Mapping[str, str]:
    """The credentials in the firmware tables, as systemd reads them."""
    prefix = "type=11,value=io.systemd.credential.binary:"
    found = [value.removeprefix(prefix) for value in values("-smbios") if value.startswith(prefix)]
    return {name: base64.b64decode(text).decode() for name, text in (value.split("=", 1) for value in found)}


def files() -> Mapping[str, str]:
    """The files that systemd-tmpfiles writes in the machine: their texts by path and mode."""
    lines = [line.split(" ") for line in credentials()["tmpfiles.extra"].splitlines() if line.startswith("f~ ")]
    return {
        f"{path} {mode} {user}:{group}": base64.b64decode(text).decode()
        for _, path, mode, user, group, _, text in lines
    }


def test_command_starts_with_the_tools_program() -> None:
    assert COMMAND[:2] == ("/tools/ld.so", "/tools/qemu")


def test_machine_is_paused_at_its_start() -> None:
    assert COMMAND.count("-S") == 1


def test_monitor_listens_and_does_not_wait() -> None:
    assert values("-qmp") == ["unix:{monitor},server=on,wait=off"]


@pytest.mark.parametrize(
    ("accelerator", "options"),
    [("kvm", (["kvm"], ["host"])), ("tcg", (["tcg,thread=multi"], ["EPYC-v4"]))],
)
def test_accelerator_has_its_processor(accelerator: str, options: tuple[list[str], list[str]]) -> None:
    command = qemu_command(MACHINE, replace(EMULATOR, accelerator=accelerator))
    assert (values("-accel", command), values("-cpu", command)) == options


@pytest.mark.parametrize(
    ("vcpus", "threads", "processors"),
    [
        (4, 2, "4,sockets=1,cores=2,threads=2"),
        (4, 1, "4,sockets=1,cores=4,threads=1"),
        (1, 2, "1,sockets=1,cores=1,threads=1"),
    ],
)
def test_processors_are_cores_with_threads(vcpus: int, threads: int, processors: str) -> None:
    hardware = replace(MACHINE.hardware, vcpus=vcpus, threads=threads)
    assert values("-smp", qemu_command(replace(MACHINE, hardware=hardware), EMULATOR)) == [processors]


def test_memory_is_in_mib() -> None:
    assert values("-m") == ["16384"]


def test_kernel_boots_from_the_root_partition_with_its_console_on_the_serial_port() -> None:
    assert (values("-kernel"), values("-append")) == (
        ["/image/vmlinuz"],
        [
            "root=PARTUUID=5ca1ab1e-c0de-4b0c-a11e-c0117a1b0c0a rw console=ttyS0 nvme_core.io_timeout=4294967295"
            " panic=-1"
        ],
    )


def test_root_disk_has_the_first_pci_address() -> None:
    """Addresses below 4 are QEMU's own; without one, a disk would get a place that depends on the other devices."""
    addresses = [field for value in values("-device") for field in value.split(",") if field.startswith("addr=")]
    assert (devices("nvme")[0], addresses) == (
        "nvme,drive=root,serial=vol0123456789abcdef0,bus=pcie.0,addr=4",
        ["addr=4", "addr=0x5"],
    )


def test_disks_are_the_root_volume_and_the_instance_stores() -> None:
    found = [value.partition(",discard=")[0] for value in values("-drive")]
    assert found == [
        "file=/disk/root.qcow2,if=none,id=root,format=qcow2",
        "file=/disk/store0.img,if=none,id=store0,format=raw",
        "file=/disk/store1.img,if=none,id=store1,format=raw",
    ]


def test_serial_numbers_are_those_of_a_volume_and_of_instance_stores() -> None:
    assert serial_numbers(COMMAND) == ["vol0123456789abcdef0", "AWS0056789abcdef0", "AWS0156789abcdef0"]


def test_serial_numbers_have_twenty_characters_at_most() -> None:
    machine = replace(MACHINE, instance_id=f"i-{'f' * 40}")
    assert [len(serial) for serial in serial_numbers(qemu_command(machine, EMULATOR))] == [20, 17, 17]


def test_volumes_have_eight_ports() -> None:
    assert devices("pcie-root-port") == [
        "pcie-root-port,id=slot0,chassis=1,slot=1",
        "pcie-root-port,id=slot1,chassis=2,slot=2",
        "pcie-root-port,id=slot2,chassis=3,slot=3",
        "pcie-root-port,id=slot3,chassis=4,slot=4",
        "pcie-root-port,id=slot4,chassis=5,slot=5",
        "pcie-root-port,id=slot5,chassis=6,slot=6",
        "pcie-root-port,id=slot6,chassis=7,slot=7",
        "pcie-root-port,id=slot7,chassis=8,slot=8",
    ]


def test_network_card_is_the_tap_with_the_interfaces_mac_address() -> None:
    assert (values("-netdev"), devices("virtio-net-pci")) == (
        ["tap,id=card0,ifname={link0},script=no,downscript=no"],
        ["virtio-net-pci,netdev=card0,mac=02:01:0a:40:01:0b,bus=pcie.0,addr=0x5,romfile="],
    )


def test_each_interface_is_a_network_card() -> None:
    machine = replace(MACHINE, macs=("02:01:0a:40:01:0b", "02:01:0a:40:02:0c"))
    cards = [word for word in qemu_command(machine, EMULATOR) if "card1" in word]
    assert cards == [
        "tap,id=card1,ifname={link1},script=no,downscript=no",
        "virtio-net-pci,netdev=card1,mac=02:01:0a:40:02:0c,bus=pcie.0,addr=0x11,romfile=",
    ]


def test_console_is_appended_to_its_file() -> None:
    assert (values("-chardev"), values("-serial")) == (
        ["file,id=console,path=/consoles/i-0123456789abcdef0,append=on"],
        ["chardev:console"],
    )


def test_commas_in_paths_are_doubled() -> None:
    """As QEMU's manual requires: a single one would begin the next option."""
    machine = replace(MACHINE, root_disk=Path("/a,b/root.qcow2"), console=Path("/a,b/console"))
    command = qemu_command(machine, EMULATOR)
    found = values("-drive", command)[0].partition(",if=")[0], values("-chardev", command)[0]
    assert found == ("file=/a,,b/root.qcow2", "file,id=console,path=/a,,b/console,append=on")


def test_firmware_names_amazon_ec2() -> None:
    assert [table(kind) for kind in (0, 2, 3)] == [
        {"vendor": "Amazon EC2", "version": "1.0"},
        {"manufacturer": "Amazon EC2", "asset": "i-0123456789abcdef0"},
        {"manufacturer": "Amazon EC2", "asset": "Amazon EC2"},
    ]


def test_product_is_the_instance_type() -> None:
    assert table(1)["product"] == "m6id.xlarge"


def test_system_uuid_begins_with_ec2_and_is_the_serial_number() -> None:
    """How programs identify an instance. Source: EC2 User Guide, "Identify EC2 instances"."""
    identity = table(1)["uuid"]
    assert (identity[:3], str(uuid.UUID(identity)), identity == table(1)["serial"]) == ("ec2", identity, True)


def test_system_uuid_is_the_same_at_each_start_of_an_instance() -> None:
    assert table(1)["uuid"] == table(1, replace(MACHINE, instance_type="m7i.large"))["uuid"]


def test_system_uuids_of_two_instances_differ() -> None:
    assert table(1)["uuid"] != table(1, replace(MACHINE, instance_id="i-0123456789abcdef1"))["uuid"]


def test_credentials_are_files_and_the_key_of_root() -> None:
    assert sorted(credentials()) == ["ssh.authorized_keys.root", "tmpfiles.extra"]


def test_root_is_open_to_the_boxs_key() -> None:
    assert credentials()["ssh.authorized_keys.root"] == KEY


def test_private_directory_is_created_before_its_file() -> None:
    assert credentials()["tmpfiles.extra"].splitlines()[0] == "d /root/.aws 0700 root root -"


def test_files_point_at_the_box() -> None:
    assert files() == {
        "/root/.aws/config 0600 root:root": "[default]\nregion = us-east-1\nendpoint_url = http://10.64.0.1\n",
        "/etc/profile.d/box.sh 0644 root:root": (
            "export AWS_ENDPOINT_URL=http://10.64.0.1 AWS_DEFAULT_REGION=us-east-1\n"
        ),
        "/etc/apt/apt.conf.d/99box 0644 root:root": 'Acquire::http::Proxy "http://10.64.0.1:3142";\n',
    }


def test_accelerators_are_device_files_with_their_tool() -> None:
    machine = replace(MACHINE, devices=("nvidia0", "nvidia1"))
    words = [value for value in values("-smbios", qemu_command(machine, EMULATOR)) if "tmpfiles.extra=" in value]
    lines = base64.b64decode(words[0].partition("tmpfiles.extra=")[2]).decode().splitlines()
    assert [line.split(" ")[:2] for line in lines[-3:]] == [
        ["c", "/dev/nvidia0"],
        ["c", "/dev/nvidia1"],
        ["f~", "/usr/bin/nvidia-smi"],
    ]
