"""The build of the tools and the image, with scripts in the roles of mmdebstrap and of the tools."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from corral.box.daemon.daemon_process import BoxError
from corral.box.vm import debian_build
from corral.box.vm.debian_build import Image, Tools, build_image, build_tools

MIRROR = "http://mirror.example/debian"
# The directory to create is the last argument but one.
BUILDS = """#!/bin/sh
echo "$*" >>{log}
sleep 0.3
while [ $# -gt 2 ]; do shift; done
mkdir -p "$1/boot" "$1/etc"
echo kernel >"$1/boot/vmlinuz-6.12"
echo systemd 257 >"$1/etc/box-packages"
"""
FAILS = """#!/bin/sh
echo "$*" >>{log}
while [ $# -gt 2 ]; do shift; done
mkdir -p "$1/etc"
for line in first second third 'E: Unable to locate package qemu'; do echo "$line" >&2; done
exit 25
"""
# A loader that logs the program with its arguments, and creates the disk that qemu-img is to write.
LOADER = """#!/bin/sh
echo "$*" >>{log}
for last; do :; done
case "$last" in *.qcow2) echo disk >"$last" ;; esac
"""
Builder = Callable[[str], Path]


def write_script(path: Path, text: str, log: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.format(log=log))
    path.chmod(0o755)


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Builder:
    """Writes a script as mmdebstrap. Returns the file in which it logs its calls."""

    def write(script: str) -> Path:
        write_script(tmp_path / "bin/mmdebstrap", script, tmp_path / "calls")
        monkeypatch.setattr(debian_build, "_PATH", f"{tmp_path}/bin:/usr/bin:/bin")
        return tmp_path / "calls"

    return write


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    """Tools whose loader is a script."""
    root = tmp_path / "tools"
    write_script(root / "lib64/ld-linux-x86-64.so.2", LOADER, root / "calls")
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/sbin").mkdir()
    for name in ("bin/qemu-img", "bin/qemu-system-x86_64", "sbin/sfdisk", "sbin/mke2fs"):
        (root / "usr" / name).touch()
    return Tools(root)


def quiet(line: str) -> None:
    """Report nothing."""


def image_of(tmp_path: Path, tools: Tools) -> Image:
    return build_image(tmp_path / "cache", MIRROR, tools, quiet)


def test_tools_are_built_once_for_concurrent_callers(tmp_path: Path, builder: Builder) -> None:
    calls, roots = builder(BUILDS), list[Path]()
    threads = [
        threading.Thread(target=lambda: roots.append(build_tools(tmp_path / "cache", MIRROR, quiet).root))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(calls.read_text().splitlines()), len(roots), len(set(roots))) == (1, 3, 1)


def test_tools_are_reported_only_when_they_are_built(tmp_path: Path, builder: Builder) -> None:
    builder(BUILDS)
    lines: list[str] = []
    for _ in range(2):
        build_tools(tmp_path / "cache", MIRROR, lines.append)
    assert lines == ["Fetch QEMU and an NFS server from Debian trixie, once: 310 MB, about a minute"]


def test_packages_come_from_the_mirror(tmp_path: Path, builder: Builder) -> None:
    calls = builder(BUILDS)
    build_tools(tmp_path / "cache", MIRROR, quiet)
    assert calls.read_text().endswith(".unfinished deb http://mirror.example/debian trixie main\n")


def test_failed_build_names_the_program_and_its_last_lines(tmp_path: Path, builder: Builder) -> None:
    builder(FAILS)
    text = (
        r"^the tools of virtual machines could not be built: mmdebstrap ended with 25: "
        r"second third E: Unable to locate package qemu$"
    )
    with pytest.raises(BoxError, match=text):
        build_tools(tmp_path / "cache", MIRROR, quiet)


def test_failed_build_leaves_nothing(tmp_path: Path, builder: Builder) -> None:
    builder(FAILS)
    with pytest.raises(BoxError):
        build_tools(tmp_path / "cache", MIRROR, quiet)
    assert [path.suffix for path in (tmp_path / "cache/vm").iterdir()] == [".lock"]


def test_build_after_a_failed_one_succeeds(tmp_path: Path, builder: Builder) -> None:
    builder(FAILS)
    with pytest.raises(BoxError):
        build_tools(tmp_path / "cache", MIRROR, quiet)
    builder(BUILDS)
    assert (build_tools(tmp_path / "cache", MIRROR, quiet).root / "boot/vmlinuz-6.12").exists()


def test_build_does_not_contain_files_of_an_interrupted_one(tmp_path: Path, builder: Builder) -> None:
    builder(BUILDS)
    root = build_tools(tmp_path / "cache", MIRROR, quiet).root
    root.rename(root.with_name(f"{root.name}.unfinished"))
    (root.with_name(f"{root.name}.unfinished") / "partial").touch()
    assert not (build_tools(tmp_path / "cache", MIRROR, quiet).root / "partial").exists()


def test_image_is_a_disk_a_kernel_and_the_versions_of_its_packages(
    tmp_path: Path, builder: Builder, tools: Tools
) -> None:
    builder(BUILDS)
    image = image_of(tmp_path, tools)
    found = {path.name: path.read_text() for path in image.directory.iterdir()}
    assert found == {"root.qcow2": "disk\n", "vmlinuz": "kernel\n", "packages": "systemd 257\n"}


def test_disk_is_made_by_the_tools_own_programs(tmp_path: Path, builder: Builder, tools: Tools) -> None:
    builder(BUILDS)
    image_of(tmp_path, tools)
    lines = (tools.root / "calls").read_text().splitlines()
    assert [line.split()[1] for line in lines] == ["sfdisk", "mke2fs", "qemu-img"]


def test_program_runs_with_the_loader_and_the_libraries_of_its_root(tools: Tools) -> None:
    root = tools.root
    assert tools.program("sfdisk") == (
        f"{root}/lib64/ld-linux-x86-64.so.2",
        "--argv0",
        "sfdisk",
        "--library-path",
        f"{root}/usr/lib/x86_64-linux-gnu:{root}/usr/lib/ganesha",
        f"{root}/usr/sbin/sfdisk",
    )


def test_qemu_finds_its_firmware_in_its_root(tools: Tools) -> None:
    root = tools.root
    assert tools.qemu()[-5:] == (
        f"{root}/usr/bin/qemu-system-x86_64",
        "-L",
        f"{root}/usr/share/qemu",
        "-L",
        f"{root}/usr/share/seabios",
    )


def test_tools_are_built_again_after_a_change_of_packages(
    tmp_path: Path, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder(BUILDS)
    first = build_tools(tmp_path / "cache", MIRROR, quiet)
    monkeypatch.setattr(debian_build, "_TOOLS", ("qemu-system-x86",))
    assert build_tools(tmp_path / "cache", MIRROR, quiet) != first


def test_image_is_built_again_after_a_change_of_its_hook(
    tmp_path: Path, builder: Builder, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder(BUILDS)
    first = image_of(tmp_path, tools)
    (tmp_path / "hook.sh").write_text("true\n")
    monkeypatch.setattr(debian_build, "_HOOK", tmp_path / "hook.sh")
    assert image_of(tmp_path, tools) != first
