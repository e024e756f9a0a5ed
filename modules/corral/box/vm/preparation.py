"""Prepare this host for virtual machines, or report in one sentence what it lacks.

`corral box start` does so before it starts the daemon, which reads the record that `prepare` leaves: the first time
takes minutes, and a person waits for it.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from corral.box.daemon.daemon_process import BoxError
from corral.box.vm.accelerator import test_accelerators
from corral.box.vm.debian_build import Image, Tools, build_image, build_tools
from corral.box.vm.debian_mirrors import host_mirrors
from corral.box.vm.virtual_host import VirtualSupport
from corral.box.vpc.capabilities import probe_host
from corral.model.cache import cache_directory

MIN_FREE_MIB = 4096  # a head and a node; see docs/box.md for what each takes
_PROGRAMS = {"mmdebstrap": "mmdebstrap", "ssh": "openssh-client", "ssh-keygen": "openssh-client"}  # with their packages
_TUN = Path("/dev/net/tun")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MEMINFO = Path("/proc/meminfo")


def prepare(record: Path, report: Callable[[str], None]) -> None:
    """Build what is missing, find the accelerator, and write the record. Raises BoxError."""
    if problem := host_problem(free_mib()):
        raise BoxError(f"virtual machines cannot run here: {problem}")
    cache, mirror = cache_directory(os.environ), host_mirrors().archive.url
    tools = build_tools(cache, mirror, report)
    image = build_image(cache, mirror, tools, report)
    held = image.directory / "accelerator.json"
    accelerator = _read_accelerator(held) or _find_accelerator(tools, image, held, report)
    document = {"tools": str(tools.root), "image": str(image.directory), "accelerator": accelerator}
    record.write_text(json.dumps(document), encoding="utf-8")


def _find_accelerator(tools: Tools, image: Image, held: Path, report: Callable[[str], None]) -> str:
    """The accelerator that boots the image's kernel; found once per boot of the host. Raises BoxError."""
    report("Boot a kernel to find the accelerator: less than a minute")
    with tempfile.TemporaryDirectory(prefix="corral-") as directory:
        tests = test_accelerators(tools.qemu(), tools.environment, image.kernel, Path(directory))
    for one in tests:
        if one.seconds is None:
            report(f"  {one.accelerator} does not work: {one.problem}")
        else:
            report(f"  {one.accelerator} works: a kernel reaches its first process in {one.seconds:.1f} s")
    if tests[-1].seconds is None:
        problems = "; ".join(f"{one.accelerator}: {one.problem}" for one in tests)
        raise BoxError(f"virtual machines cannot run here: no accelerator boots a kernel ({problems})")
    held.write_text(json.dumps({"boot": _boot_id(), "accelerator": tests[-1].accelerator}), encoding="utf-8")
    return tests[-1].accelerator


def _read_accelerator(held: Path) -> str | None:
    """The accelerator that was found since the host's last boot."""
    try:
        document = json.loads(held.read_text(encoding="utf-8"))
        return str(document["accelerator"]) if document["boot"] == _boot_id() else None
    except (OSError, ValueError, TypeError, KeyError):  # missing or damaged
        return None


def _boot_id() -> str:
    return _BOOT_ID.read_text(encoding="ascii").strip()


def read_support(record: Path) -> VirtualSupport:
    """What the record of `prepare` names."""
    document = json.loads(record.read_text(encoding="utf-8"))
    return VirtualSupport(
        tools=Tools(Path(document["tools"])),
        image=Image(Path(document["image"])),
        accelerator=document["accelerator"],
    )


def host_problem(free: int) -> str | None:
    """What the host lacks, and what to do; None if it lacks nothing. `free`: MiB of memory."""
    if os.geteuid() != 0:
        return "they need root, who may serve file systems by NFS - run `corral box start` with sudo"
    if problem := probe_host().problem:
        return problem
    if not _TUN.exists():
        return f"{_TUN} is missing - load the kernel's module `tun`"
    missing = [package for program, package in _PROGRAMS.items() if not shutil.which(program)]
    if missing:
        return f"{missing[0]} is not installed - run `apt install {' '.join(sorted(set(missing)))}`"
    if free < MIN_FREE_MIB:
        return f"{free:,} MiB of memory are free, a head and a node need {MIN_FREE_MIB:,} - end other programs"
    return None


def free_mib() -> int:
    """The memory that programs can still get, in MiB."""
    rows = dict(line.split(":", 1) for line in _MEMINFO.read_text(encoding="ascii").splitlines())
    return int(rows["MemAvailable"].split()[0]) // 1024
