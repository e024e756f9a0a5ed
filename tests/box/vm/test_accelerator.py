"""Which accelerator works, with scripts in the role of QEMU; and the file system that the real one boots."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from corral.box.vm import accelerator
from corral.box.vm.accelerator import AcceleratorTest, first_process_archive
from corral.box.vm.accelerator import test_accelerators as boot_with_each

WORKS = "echo userspace"
ENDS = "echo first >&2; echo 'qemu: no such device' >&2; exit 1"
IS_KVM = 'case "$*" in *" kvm "*) '


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file of an archive."""

    name: str
    mode: int
    device: tuple[int, int]
    content: bytes


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A host whose /dev/kvm can be opened, with short limits. Returns a directory for files."""
    monkeypatch.setattr("os.access", lambda path, mode: True)
    monkeypatch.setattr(accelerator, "_LIMITS_S", {"kvm": 1, "tcg": 20})
    return tmp_path


def results(host: Path, script: str) -> tuple[AcceleratorTest, ...]:
    """The tests of a QEMU that is this script."""
    return boot_with_each(("/bin/sh", "-c", script, "qemu"), {"PATH": "/usr/bin:/bin"}, Path("/vmlinuz"), host)


def problems(host: Path, script: str) -> list[tuple[str, str, bool]]:
    return [(one.accelerator, one.problem, one.seconds is not None) for one in results(host, script)]


def test_kvm_that_boots_a_kernel_is_the_only_one_tested(host: Path) -> None:
    assert problems(host, WORKS) == [("kvm", "", True)]


def test_emulation_is_tested_after_a_kvm_that_hangs(host: Path) -> None:
    assert problems(host, f"{IS_KVM} exec sleep 60;; esac; {WORKS}") == [
        ("kvm", "a kernel does not reach its first process within 1 s", False),
        ("tcg", "", True),
    ]


def test_problem_is_the_last_line_of_qemu(host: Path) -> None:
    assert problems(host, f"{IS_KVM} {ENDS};; esac; {WORKS}")[0] == ("kvm", "qemu: no such device", False)


def test_kernel_that_stops_before_its_first_process_is_a_problem(host: Path) -> None:
    assert problems(host, "echo booting; echo 'Kernel panic'")[1] == ("tcg", "Kernel panic", False)


def test_qemu_that_prints_nothing_ends_at_once(host: Path) -> None:
    assert problems(host, "exit 0")[0] == ("kvm", "QEMU ends at once", False)


def test_kvm_that_cannot_be_opened_is_not_tested(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: path != "/dev/kvm")
    assert problems(host, WORKS) == [("kvm", "/dev/kvm cannot be opened", False), ("tcg", "", True)]


def test_kernel_boots_with_the_archive(host: Path) -> None:
    results(host, f'shift 10; echo "$*" >{host}/arguments; {WORKS}')
    words = (host / "arguments").read_text().split()
    archive = Path(words[words.index("-initrd") + 1])
    assert (words[words.index("-kernel") + 1], archive.read_bytes()[:6]) == ("/vmlinuz", b"070701")


def entries(archive: bytes) -> Iterator[Entry]:
    """The files of a cpio archive. Source: the kernel's documentation, "initramfs buffer format"."""
    start = 0
    while True:
        assert archive[start : start + 6] == b"070701"
        fields = [int(archive[start + 6 + 8 * n : start + 14 + 8 * n], 16) for n in range(13)]
        mode, size, device, length = fields[1], fields[6], (fields[9], fields[10]), fields[11]
        name = archive[start + 110 : start + 110 + length]
        assert name.endswith(b"\0")
        content = start + (110 + length + 3) // 4 * 4
        yield Entry(name=name[:-1].decode(), mode=mode, device=device, content=archive[content : content + size])
        start = content + (size + 3) // 4 * 4
        if name == b"TRAILER!!!\0":
            assert start == len(archive)
            return


def test_archive_has_a_console_and_an_executable_first_process() -> None:
    found = [(one.name, oct(one.mode), one.device) for one in entries(first_process_archive())]
    assert found == [
        ("dev", "0o40755", (0, 0)),
        ("dev/console", "0o20600", (5, 1)),  # a character device. Source: the kernel's documentation, "devices.txt"
        ("init", "0o100755", (0, 0)),
        ("TRAILER!!!", "0o0", (0, 0)),
    ]


def program() -> bytes:
    """The first process. Never run it: it powers the machine off."""
    (found,) = [one.content for one in entries(first_process_archive()) if one.name == "init"]
    return found


def test_first_process_is_a_static_program_for_x86_64() -> None:
    """Source: elf(5). 64 bits, little-endian, ET_EXEC, EM_X86_64; one segment, PT_LOAD."""
    content = program()
    kind, machine = struct.unpack_from("<HH", content, 16)
    count, (segment,) = struct.unpack_from("<H", content, 56)[0], struct.unpack_from("<I", content, 64)
    assert (content[:6], kind, machine, count, segment) == (b"\x7fELF\x02\x01", 2, 62, 1, 1)


def test_first_process_begins_in_its_executable_segment() -> None:
    content = program()
    (entry,) = struct.unpack_from("<Q", content, 24)
    flags, offset, address, _, size = struct.unpack_from("<IQQQQ", content, 68)
    assert (flags, offset, size, 0 < entry - address < size) == (5, 0, len(content), True)


def test_first_process_writes_the_word_at_its_end() -> None:
    content = program()
    (entry,) = struct.unpack_from("<Q", content, 24)
    (base,) = struct.unpack_from("<Q", content, 80)
    (text,) = struct.unpack_from("<Q", content, entry - base + 12)  # the operand of its third instruction
    (length,) = struct.unpack_from("<I", content, entry - base + 21)
    assert content[text - base : text - base + length] == b"userspace\n"
