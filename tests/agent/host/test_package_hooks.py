"""What packages do beside their files is off while a boot installs them, and on afterwards."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from corral.agent.host.package_hooks import without_hooks

SYSTEMCTL = "opt/corral/stand-ins/systemctl"
POLICY, INITRAMFS, MANUALS = (
    "usr/sbin/policy-rc.d",
    "etc/initramfs-tools/update-initramfs.conf",
    "var/lib/man-db/auto-update",
)
IMAGE = {POLICY: "#!/bin/sh\nexit 0\n", INITRAMFS: "update_initramfs=yes\n", MANUALS: ""}


def image(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(IMAGE[name])


def files(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_no_daemon_starts(tmp_path: Path) -> None:
    with without_hooks(tmp_path):
        assert (tmp_path / POLICY).read_text().splitlines()[-1] == "exit 101"


def test_a_program_of_the_policy_can_be_run(tmp_path: Path) -> None:
    with without_hooks(tmp_path):
        assert (tmp_path / POLICY).stat().st_mode & 0o777 == 0o755


def test_no_initramfs_is_written(tmp_path: Path) -> None:
    image(tmp_path, INITRAMFS)
    with without_hooks(tmp_path):
        assert (tmp_path / INITRAMFS).read_text().splitlines()[-1] == "update_initramfs=no"


@pytest.mark.parametrize(
    ("arguments", "passed"), [("--system daemon-reload", False), ("daemon-reload", False), ("start munge", True)]
)
def test_packages_do_not_let_systemd_read_all_units(tmp_path: Path, arguments: str, passed: bool) -> None:
    with without_hooks(tmp_path):
        program = tmp_path / "copy"  # calls another systemctl
        program.write_text((tmp_path / SYSTEMCTL).read_text().replace("/usr/bin/systemctl", "echo"))
    done = subprocess.run(["sh", str(program), *arguments.split()], capture_output=True, check=True, text=True)
    assert done.stdout == (f"{arguments}\n" if passed else "")


def test_no_manual_is_indexed(tmp_path: Path) -> None:
    image(tmp_path, MANUALS)
    with without_hooks(tmp_path):
        assert not (tmp_path / MANUALS).exists()


def test_an_image_without_these_packages_gets_none_of_their_files(tmp_path: Path) -> None:
    with without_hooks(tmp_path):
        assert set(files(tmp_path)) == {POLICY, SYSTEMCTL}


@pytest.mark.parametrize("names", [(), (POLICY,), (INITRAMFS,), (MANUALS,), (POLICY, INITRAMFS, MANUALS)])
def test_the_images_own_files_come_back(tmp_path: Path, names: tuple[str, ...]) -> None:
    image(tmp_path, *names)
    with without_hooks(tmp_path):
        pass
    assert files(tmp_path) == {name: IMAGE[name] for name in names}


def test_the_images_own_files_come_back_after_an_error(tmp_path: Path) -> None:
    image(tmp_path, *IMAGE)
    with pytest.raises(OSError), without_hooks(tmp_path):
        raise OSError("the mirror is away")
    assert files(tmp_path) == IMAGE


@pytest.mark.parametrize("names", [(), (POLICY, INITRAMFS, MANUALS)])
def test_the_images_own_files_come_back_after_an_interrupted_boot(tmp_path: Path, names: tuple[str, ...]) -> None:
    image(tmp_path, *names)
    interrupted = without_hooks(tmp_path)
    interrupted.__enter__()
    off = files(tmp_path)
    with without_hooks(tmp_path):
        assert files(tmp_path) == off
    assert files(tmp_path) == {name: IMAGE[name] for name in names}
