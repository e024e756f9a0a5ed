"""Build what virtual machines need from Debian's packages: the tools that run them, and the image that they boot.

Both are made once per user, in corral's cache: a root directory with QEMU and an NFS server, which run with its own
libraries whatever the host has, and a disk with the packages of Debian's cloud image. Files with the packages'
versions lie beside them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from corral.box.daemon.daemon_process import BoxError
from corral.box.vm.qemu_command import ROOT_UUID
from corral.catalog.aws.images import VM_PROFILE, find_image_profile

SUITE = "trixie"
_TOOLS = ("qemu-system-x86", "qemu-utils", "seabios", "nfs-ganesha-vfs", "e2fsprogs", "fdisk")
# Source: debian-cloud-images, config_space/13, classes CLOUD, EC2 and their bases; without what only people use.
_IMAGE = (
    *("systemd-sysv", "systemd-resolved", "systemd-timesyncd", "udev", "dbus", "libpam-systemd", "polkitd"),
    *("linux-image-cloud-amd64", "cloud-init", "cloud-guest-utils", "netplan.io", "dhcpcd-base", "openssh-server"),
    *("python3", "python3-yaml", "iproute2", "iputils-ping", "procps", "sudo", "curl", "ca-certificates", "socat"),
    *("nvme-cli", "e2fsprogs", "kmod", "netbase", "unattended-upgrades", "less", "fdisk", "zstd", "gdisk", "tcpdump"),
)
_LEFT_OUT = ("/usr/share/man/*", "/usr/share/locale/*", "/usr/share/doc/*")
_HOOK = Path(__file__).with_name("image_hook.sh")
_DISK_GIB = find_image_profile(VM_PROFILE).snapshot_gib
_FIRST_SECTOR = 2048
_PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_LIBRARY_PATH = (_LIBRARIES, "usr/lib/ganesha")
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Tools:
    """A root directory with the tools."""

    root: Path

    def program(self, name: str) -> tuple[str, ...]:
        """The first words of a command line that runs this program with its own libraries."""
        found = next(path for part in ("usr/bin", "usr/sbin") if (path := self.root / part / name).exists())
        return (
            str(self.root / "lib64/ld-linux-x86-64.so.2"),
            *("--argv0", name, "--library-path", ":".join(str(self.root / path) for path in _LIBRARY_PATH)),
            str(found),
        )

    def qemu(self) -> tuple[str, ...]:
        """The first words of QEMU's command line."""
        shared = self.root / "usr/share"
        return (*self.program("qemu-system-x86_64"), "-L", str(shared / "qemu"), "-L", str(shared / "seabios"))

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of the tools."""
        return {"QEMU_MODULE_DIR": str(self.root / _LIBRARIES / "qemu"), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


@dataclass(frozen=True, slots=True)
class Image:
    """The image of machines, in its directory."""

    directory: Path

    @property
    def disk(self) -> Path:
        """Its disk, a qcow2 file."""
        return self.directory / "root.qcow2"

    @property
    def kernel(self) -> Path:
        """Its kernel."""
        return self.directory / "vmlinuz"

    @property
    def packages(self) -> Path:
        """The versions of its packages, a line each."""
        return self.directory / "packages"


def build_tools(cache: Path, mirror: str, report: Report) -> Tools:
    """The tools, built unless they are there. Raises BoxError."""
    with _built(cache, f"tools-{_digest(*_TOOLS)}") as (root, draft):
        if draft:
            report(f"Fetch QEMU and an NFS server from Debian {SUITE}, once: 310 MB, about a minute")
            _run(_mmdebstrap(_TOOLS, draft, mirror), "the tools of virtual machines")
    return Tools(root)


def build_image(cache: Path, mirror: str, tools: Tools, report: Report) -> Image:
    """The image, built unless it is there. Raises BoxError."""
    user = find_image_profile(VM_PROFILE).default_user
    with _built(cache, f"image-{_digest(*_IMAGE, _HOOK.read_text(encoding='utf-8'))}") as (directory, draft):
        if draft:
            report(f"Build the image of virtual machines from Debian {SUITE}, once: 700 MB, about three minutes")
            system = draft / "system"
            hook = f'--customize-hook=sh {_HOOK} "$1" {user}'
            draft.mkdir(parents=True)
            _run(_mmdebstrap(_IMAGE, system, mirror, hook), "the image of virtual machines")
            _make_disk(system, draft, tools)
            shutil.rmtree(system)
    return Image(directory)


def _mmdebstrap(packages: Sequence[str], target: Path, mirror: str, *hooks: str) -> list[str]:
    return [
        *("mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", f"--include={','.join(packages)}"),
        '--aptopt=APT::Install-Recommends "false"',
        *(f"--dpkgopt=path-exclude={path}" for path in _LEFT_OUT),
        *hooks,
        *(SUITE, str(target), f"deb {mirror} {SUITE} main"),
    ]


def _make_disk(system: Path, directory: Path, tools: Tools) -> None:
    """Write the system's files to a disk, and its kernel and the versions of its packages beside it."""
    image = Image(directory)
    kernel = max((system / "boot").glob("vmlinuz-*"))
    shutil.copyfile(kernel, image.kernel)
    shutil.move(system / "etc/box-packages", image.packages)
    raw = directory / "root.raw"
    with raw.open("wb") as file:
        file.truncate(_DISK_GIB << 30)
    label = f"label: gpt\nstart={_FIRST_SECTOR}, uuid={ROOT_UUID}, name=root\n"
    what = "the disk of virtual machines"
    _run([*tools.program("sfdisk"), "--quiet", str(raw)], what, label)
    blocks = (_DISK_GIB << 20) - 2 * _FIRST_SECTOR  # KiB, with room for the second partition table
    offset = f"offset={_FIRST_SECTOR * 512},root_owner=0:0"
    options = ["-q", "-t", "ext4", "-L", "cloudroot", "-E", offset, "-d", str(system)]
    _run([*tools.program("mke2fs"), *options, str(raw), f"{blocks}k"], what)
    _run([*tools.program("qemu-img"), "convert", "-O", "qcow2", str(raw), str(image.disk)], what)
    raw.unlink()


@contextmanager
def _built(cache: Path, name: str) -> Iterator[tuple[Path, Path | None]]:
    """The finished directory, and where to build it unless it is there. One process builds, others wait."""
    finished = cache / "vm" / name
    finished.parent.mkdir(parents=True, exist_ok=True)
    with finished.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if finished.exists():
            yield finished, None
            return
        draft = finished.with_name(f"{name}.unfinished")
        shutil.rmtree(draft, ignore_errors=True)
        try:
            yield finished, draft
            draft.rename(finished)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _run(command: Sequence[str], what: str, text: str = "") -> None:
    environment = {**os.environ, "PATH": _PATH}
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        output = " ".join(done.stderr.splitlines()[-3:])
        raise BoxError(f"{what} could not be built: {Path(command[0]).name} ended with {done.returncode}: {output}")


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join((SUITE, *parts)).encode()).hexdigest()[:12]
