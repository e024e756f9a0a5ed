"""Which accelerator runs a virtual machine here: found by booting a kernel, with a time limit.

A /dev/kvm proves nothing: some hosts offer one in which no stock kernel reaches its first process.
"""

from __future__ import annotations

import os
import struct
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from corral.box.vm.qemu_command import ACCELERATORS, MACHINE, PROCESSORS

_WORD = b"userspace"
_LIMITS_S = {"kvm": 20, "tcg": 120}  # a kernel needs 1 s with KVM, and some seconds without
_MEMORY_MIB = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorTest:
    """One try. `seconds` from QEMU's start to the first process; None if it never ran, because of `problem`."""

    accelerator: str
    seconds: float | None
    problem: str = ""


def test_accelerators(
    program: tuple[str, ...], environment: Mapping[str, str], kernel: Path, directory: Path
) -> tuple[AcceleratorTest, ...]:
    """Try KVM and then emulation, until one works. `directory`: where files are written for the test."""
    initrd = directory / "initrd"
    initrd.write_bytes(first_process_archive())
    tests: list[AcceleratorTest] = []
    for name in ACCELERATORS:
        if name == "kvm" and not os.access("/dev/kvm", os.R_OK | os.W_OK):
            tests.append(AcceleratorTest(accelerator=name, seconds=None, problem="/dev/kvm cannot be opened"))
            continue
        tests.append(_boot(name, (*program, *_arguments(name, kernel, initrd)), environment))
        if tests[-1].seconds is not None:
            break
    return tuple(tests)


def _arguments(accelerator: str, kernel: Path, initrd: Path) -> tuple[str, ...]:
    return (
        *("-no-user-config", "-nodefaults", "-display", "none", "-no-reboot", "-m", str(_MEMORY_MIB)),
        *("-machine", MACHINE, "-accel", ACCELERATORS[accelerator], "-cpu", PROCESSORS[accelerator]),
        *("-kernel", str(kernel), "-initrd", str(initrd), "-append", "console=ttyS0 quiet panic=-1"),
        *("-serial", "stdio"),
    )


def _boot(accelerator: str, command: tuple[str, ...], environment: Mapping[str, str]) -> AcceleratorTest:
    began, limit = time.monotonic(), _LIMITS_S[accelerator]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=limit, env=dict(environment)
        )
    except subprocess.TimeoutExpired:
        problem = f"a kernel does not reach its first process within {limit} s"
        return AcceleratorTest(accelerator=accelerator, seconds=None, problem=problem)
    if _WORD in done.stdout:
        return AcceleratorTest(accelerator=accelerator, seconds=time.monotonic() - began)
    output = (done.stderr or done.stdout).decode(errors="replace").splitlines()[-1:]
    return AcceleratorTest(accelerator=accelerator, seconds=None, problem=" ".join(output) or "QEMU ends at once")


def first_process_archive() -> bytes:
    """An initial file system with a console and a first process, which writes a word and powers off.

    Source: the kernel's documentation, "initramfs buffer format"; syscall numbers of x86-64; reboot(2).
    """
    entries = (
        _entry("dev", mode=0o040755),
        _entry("dev/console", mode=0o020600, device=(5, 1)),
        _entry("init", mode=0o100755, content=_program(_WORD + b"\n")),
        _entry("TRAILER!!!", mode=0),
    )
    return b"".join(entries)


def _entry(name: str, *, mode: int, content: bytes = b"", device: tuple[int, int] = (0, 0)) -> bytes:
    fields = (0, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name) + 1, 0)
    head = b"070701" + "".join(f"{field:08x}" for field in fields).encode() + name.encode() + b"\0"
    return _padded(head) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _program(text: bytes) -> bytes:
    """An ELF program that writes the text to its standard output and powers the machine off."""
    base, head = 0x400000, 64 + 56
    code = b"".join(
        (
            b"\xb8\x01\x00\x00\x00\xbf\x01\x00\x00\x00",  # write(1,
            b"\x48\xbe" + struct.pack("<Q", base + head + 51),  # text,
            b"\xba" + struct.pack("<I", len(text)) + b"\x0f\x05",  # length)
            b"\xb8\xa9\x00\x00\x00\xbf" + struct.pack("<I", 0xFEE1DEAD),  # reboot(LINUX_REBOOT_MAGIC1,
            b"\xbe" + struct.pack("<I", 0x28121969) + b"\xba" + struct.pack("<I", 0x4321FEDC),  # MAGIC2, POWER_OFF)
            b"\x0f\x05\xeb\xfe",  # and wait
        )
    )
    size = head + len(code) + len(text)
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)
    elf = identity + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, base + head, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x1000)
    return elf + segment + code + text
