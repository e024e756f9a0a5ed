"""What a host needs for virtual machines, and the record of what it has."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corral.box.daemon.daemon_process import BoxError
from corral.box.vm import preparation
from corral.box.vm.accelerator import AcceleratorTest
from corral.box.vm.debian_build import Image, Tools
from corral.box.vm.preparation import free_mib, host_problem, prepare, read_support
from corral.box.vpc.capabilities import HostSupport, Users

KVM = AcceleratorTest(accelerator="kvm", seconds=1.25)
NO_KVM = AcceleratorTest(accelerator="kvm", seconds=None, problem="/dev/kvm cannot be opened")
TCG = AcceleratorTest(accelerator="tcg", seconds=9.0)
NO_TCG = AcceleratorTest(accelerator="tcg", seconds=None, problem="Kernel panic")


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A host that lacks nothing: root, with namespaces, /dev/net/tun and all programs. Returns its files' directory."""
    (tmp_path / "tun").touch()
    (tmp_path / "boot_id").write_text("first\n")
    (tmp_path / "meminfo").write_text("MemTotal:  16384000 kB\nMemAvailable:   8388608 kB\n")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(preparation, "probe_host", lambda: HostSupport(users=Users.ROOT))
    monkeypatch.setattr(preparation, "_TUN", tmp_path / "tun")
    monkeypatch.setattr(preparation, "_BOOT_ID", tmp_path / "boot_id")
    monkeypatch.setattr(preparation, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    return tmp_path


@pytest.fixture
def accelerators(host: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[AcceleratorTest, ...]]:
    """What the next tests of accelerators find; the tools and the image are there."""
    (host / "tools/usr/bin").mkdir(parents=True)
    (host / "tools/usr/bin/qemu-system-x86_64").touch()
    tools, image, found = Tools(host / "tools"), Image(host), list[tuple[AcceleratorTest, ...]]()
    monkeypatch.setattr(preparation, "build_tools", lambda cache, mirror, report: tools)
    monkeypatch.setattr(preparation, "build_image", lambda cache, mirror, tools, report: image)
    monkeypatch.setattr(preparation, "test_accelerators", lambda *_: found.pop(0))
    monkeypatch.setenv("CORRAL_DEBIAN_MIRROR", "http://mirror.example/debian")
    return found


def prepared(host: Path, report: Callable[[str], None] = lambda line: None) -> str:
    """The accelerator that a preparation records."""
    prepare(host / "record", report)
    return read_support(host / "record").accelerator


def test_complete_host_has_no_problem(host: Path) -> None:
    assert host_problem(4096) is None


def without_root(monkeypatch: pytest.MonkeyPatch, host: Path) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)


def without_namespaces(monkeypatch: pytest.MonkeyPatch, host: Path) -> None:
    support = HostSupport(users=None, problem="unshare not found - install util-linux and iproute2")
    monkeypatch.setattr(preparation, "probe_host", lambda: support)


def without_tun(monkeypatch: pytest.MonkeyPatch, host: Path) -> None:
    (host / "tun").unlink()
    monkeypatch.setattr(preparation, "_TUN", Path("/dev/net/missing"))


def without_programs(monkeypatch: pytest.MonkeyPatch, host: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)


def without_ssh(monkeypatch: pytest.MonkeyPatch, host: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: name if name == "mmdebstrap" else None)


@pytest.mark.parametrize(
    ("remove", "problem"),
    [
        (
            without_root,
            "they need root, who may serve file systems by NFS - run `corral box start` with sudo",
        ),
        (without_namespaces, "unshare not found - install util-linux and iproute2"),
        (without_tun, "/dev/net/missing is missing - load the kernel's module `tun`"),
        (without_programs, "mmdebstrap is not installed - run `apt install mmdebstrap openssh-client`"),
        (without_ssh, "openssh-client is not installed - run `apt install openssh-client`"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_problem_is_what_the_host_lacks_and_how_to_get_it(
    host: Path, monkeypatch: pytest.MonkeyPatch, remove: Any, problem: str
) -> None:
    remove(monkeypatch, host)
    assert host_problem(8192) == problem


def test_host_with_little_free_memory_has_a_problem(host: Path) -> None:
    assert host_problem(4095) == ("4,095 MiB of memory are free, a head and a node need 4,096 - end other programs")


def test_free_memory_is_what_programs_can_still_get(host: Path) -> None:
    assert free_mib() == 8192


def test_preparation_of_an_unfit_host_is_refused(host: Path) -> None:
    (host / "tun").unlink()
    with pytest.raises(BoxError, match=r"^virtual machines cannot run here: .*tun is missing - load the kernel's"):
        prepare(host / "record", lambda line: None)


def test_record_names_the_tools_the_image_and_the_accelerator(
    host: Path, accelerators: list[tuple[AcceleratorTest, ...]]
) -> None:
    accelerators.append((KVM,))
    prepare(host / "record", lambda line: None)
    found = read_support(host / "record")
    assert (found.tools.root, found.image.kernel, found.accelerator) == (host / "tools", host / "vmlinuz", "kvm")


def test_emulation_is_recorded_where_kvm_does_not_work(
    host: Path, accelerators: list[tuple[AcceleratorTest, ...]]
) -> None:
    accelerators.append((NO_KVM, TCG))
    assert prepared(host) == "tcg"


def test_accelerator_is_found_once_per_boot_of_the_host(
    host: Path, accelerators: list[tuple[AcceleratorTest, ...]]
) -> None:
    accelerators.append((NO_KVM, TCG))
    assert [prepared(host), prepared(host)] == ["tcg", "tcg"]  # a second test would find nothing


def test_accelerator_is_found_again_after_a_reboot(host: Path, accelerators: list[tuple[AcceleratorTest, ...]]) -> None:
    accelerators.extend([(NO_KVM, TCG), (KVM,)])
    first = prepared(host)
    (host / "boot_id").write_text("second\n")
    assert (first, prepared(host)) == ("tcg", "kvm")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"boot": "first"}'])
def test_damaged_result_counts_as_missing(
    host: Path, accelerators: list[tuple[AcceleratorTest, ...]], text: str
) -> None:
    (host / "accelerator.json").write_text(text)
    accelerators.append((KVM,))
    assert prepared(host) == "kvm"


def test_report_shows_each_test_of_an_accelerator(host: Path, accelerators: list[tuple[AcceleratorTest, ...]]) -> None:
    accelerators.append((NO_KVM, TCG))
    lines: list[str] = []
    prepared(host, lines.append)
    assert lines == [
        "Boot a kernel to find the accelerator: less than a minute",
        "  kvm does not work: /dev/kvm cannot be opened",
        "  tcg works: a kernel reaches its first process in 9.0 s",
    ]


def test_host_without_an_accelerator_is_refused_with_both_problems(
    host: Path, accelerators: list[tuple[AcceleratorTest, ...]]
) -> None:
    accelerators.append((NO_KVM, NO_TCG))
    text = r"no accelerator boots a kernel \(kvm: /dev/kvm cannot be opened; tcg: Kernel panic\)$"
    with pytest.raises(BoxError, match=text):
        prepared(host)
