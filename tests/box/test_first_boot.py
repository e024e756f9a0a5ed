"""User data as a machine of the box reads them, and what its first boot then does."""

from __future__ import annotations

import gzip
import stat
import subprocess
from pathlib import Path

import pytest

from corral.box.first_boot import File, FirstBoot, UserDataError, lay_down, read_user_data

ONE_FILE = "#cloud-config\nwrite_files:\n  - path: /etc/motd\n"


def content_of(lines: str) -> bytes:
    """The content of the one file that a cloud-config with these lines asks for."""
    return read_user_data(f"{ONE_FILE}{lines}".encode()).files[0].content


def mode_of(permissions: str) -> int:
    return read_user_data(f"{ONE_FILE}    permissions: {permissions}\n".encode()).files[0].mode


def test_a_script_is_written_and_run() -> None:
    script = b"#!/bin/sh\necho hello\n"
    path = "/var/lib/cloud/scripts/user-data"
    assert read_user_data(script) == FirstBoot(files=(File(path=path, content=script, mode=0o700),), commands=(path,))


def test_a_cloud_config_asks_for_files_and_commands() -> None:
    text = ONE_FILE + '    content: "hello\\n"\nruncmd:\n  - [/bin/echo, two words]\n  - echo $HOME; exit 3\n'
    assert read_user_data(text.encode()) == FirstBoot(
        files=(File(path="/etc/motd", content=b"hello\n", mode=0o644),),
        commands=("/bin/echo 'two words'", "echo $HOME; exit 3"),
    )


def test_packed_user_data_are_unpacked() -> None:
    assert read_user_data(gzip.compress(b"#cloud-config\nruncmd: [ls]\n")).commands == ("ls",)


def test_packages_are_not_installed() -> None:
    asked = b"#cloud-config\npackage_update: true\npackages: [slurmd]\n"
    assert read_user_data(asked) == FirstBoot(files=(), commands=())


def test_an_empty_cloud_config_asks_for_nothing() -> None:
    assert read_user_data(b"#cloud-config\n") == FirstBoot(files=(), commands=())


@pytest.mark.parametrize("permissions", ['"0755"', "'755'", "0o755", "0755", "493"])
def test_permissions_are_octal_however_they_are_written(permissions: str) -> None:
    assert mode_of(permissions) == 0o755


@pytest.mark.parametrize(
    ("lines", "content"),
    [
        ('    content: |\n      it\'s "quoted"\n      $HOME `x` \\n\n', b'it\'s "quoted"\n$HOME `x` \\n\n'),
        ('    content: "a\\nb"\n', b"a\nb"),
        ("    content: 5\n", b"5"),
        ("", b""),
        ("    content: !!binary AAH/\n", b"\x00\x01\xff"),
        ("    encoding: b64\n    content: AAH/\n", b"\x00\x01\xff"),
        ("    encoding: base64\n    content: |\n      AAH/\n      Cg==\n", b"\x00\x01\xff\n"),
        ("    encoding: gz+b64\n    content: H4sIAAAAAAAC/8tIzcnJBwCGphA2BQAAAA==\n", b"hello"),
        ("    encoding: gzip\n    content: !!binary H4sIAAAAAAAC/8tIzcnJBwCGphA2BQAAAA==\n", b"hello"),
        ("    encoding: text/plain\n    content: AAH/\n", b"AAH/"),
    ],
    ids=["quotes", "newline", "number", "empty", "binary", "b64", "base64", "gz+b64", "gzip", "plain"],
)
def test_the_content_of_a_file_is_what_was_meant(lines: str, content: bytes) -> None:
    assert content_of(lines) == content


@pytest.mark.parametrize(
    ("user_data", "sentence"),
    [
        (b"hello", "user data are neither a script (#!) nor a #cloud-config"),
        (b"\x1f\x8bhello", "user data begin like gzip and are not: "),
        (b"#cloud-config\n- ls\n", "the #cloud-config is a list, not a mapping"),
        (b"#cloud-config\n\xff\n", "the #cloud-config is no YAML: "),
        (b"#cloud-config\n{[\n", "the #cloud-config is no YAML: "),
        (
            b"#cloud-config\nusers: [me]\nbootcmd: [ls]\n",
            "the box's machines do not know bootcmd, users of a #cloud-config",
        ),
        (b"#cloud-config\nruncmd: ls\n", "runcmd of the #cloud-config is a str, not a list"),
        (b"#cloud-config\nruncmd: [5]\n", "runcmd: 5 is neither a text nor a list"),
        (b"#cloud-config\nwrite_files: [x]\n", "write_files: 'x' names no absolute path"),
        (b"#cloud-config\nwrite_files: [{path: x}]\n", "write_files: {'path': 'x'} names no absolute path"),
        (
            f"{ONE_FILE}    append: true\n    defer: true\n".encode(),
            "the box's machines do not know append, defer of write_files, as for /etc/motd",
        ),
        (
            f"{ONE_FILE}    owner: slurm:slurm\n".encode(),
            "write_files: /etc/motd is for slurm:slurm, the box's machines write files of root alone",
        ),
        (f"{ONE_FILE}    encoding: rot13\n".encode(), "write_files: /etc/motd has encoding 'rot13', known are "),
        (
            f"{ONE_FILE}    encoding: b64\n    content: x\n".encode(),
            "write_files: the content of /etc/motd is not b64: ",
        ),
        (f"{ONE_FILE}    encoding: gz\n    content: x\n".encode(), "write_files: the content of /etc/motd is not gz: "),
        (
            f"{ONE_FILE}    permissions: rwx\n".encode(),
            "write_files: /etc/motd has permissions 'rwx', such as '0644' would be right",
        ),
    ],
)
def test_what_a_machine_cannot_follow_is_refused(user_data: bytes, sentence: str) -> None:
    with pytest.raises(UserDataError) as refused:
        read_user_data(user_data)
    assert str(refused.value).startswith(sentence)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A disk whose first boot writes two files beside it, and says something."""
    place = tmp_path / "disk"
    (place / "box").mkdir(parents=True)
    spaced = f"{tmp_path}/a b/it's"
    files = (
        File(path=f"{tmp_path}/new/run", content=b"\x00\xff", mode=0o750),
        File(path=spaced, content=b"x", mode=0o600),
    )
    lay_down(FirstBoot(files=files, commands=("echo one", "false", "echo 'two  three' $UNSET")), place)
    return place


def run_first_boot(disk: Path) -> str:
    command = ["sh", str(disk / "box/first-boot.sh")]
    return subprocess.run(command, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"}).stdout


@pytest.mark.parametrize("script", ["init.sh", "sbin/poweroff", "first-boot.sh"])
def test_what_is_laid_down_passes_shellcheck(disk: Path, script: str) -> None:
    unset = "--exclude=SC2086,SC2154"  # the command of this test that names a variable on purpose
    checked = subprocess.run(["shellcheck", unset, str(disk / "box" / script)], capture_output=True, text=True)
    assert (checked.stdout, checked.returncode) == ("", 0)


def test_the_first_boot_goes_on_after_a_command_that_fails(disk: Path) -> None:
    assert run_first_boot(disk) == "one\ntwo  three\n"


def test_the_first_boot_writes_files_with_their_bytes_and_modes(disk: Path, tmp_path: Path) -> None:
    run_first_boot(disk)
    made = [tmp_path / "new/run", tmp_path / "a b/it's"]
    assert [(file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) for file in made] == [
        (b"\x00\xff", 0o750),
        (b"x", 0o600),
    ]


def test_what_the_first_boot_will_write_is_for_root_alone(disk: Path) -> None:
    assert stat.S_IMODE((disk / "box/files").stat().st_mode) == 0o700
