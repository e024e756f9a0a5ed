"""User data as a machine reads it, and its first boot."""

from __future__ import annotations

import gzip
import stat
import subprocess
from pathlib import Path

import pytest

from corral.box.machines.cloud_init import FirstBoot, UserDataError, UserDataFile, parse_user_data, write_boot_files

ONE_FILE = "#cloud-config\nwrite_files:\n  - path: /etc/motd\n"


def content_of(lines: str) -> bytes:
    """The content of the one file in a cloud-config with these lines."""
    return parse_user_data(f"{ONE_FILE}{lines}".encode()).files[0].content


def mode_of(permissions: str) -> int:
    return parse_user_data(f"{ONE_FILE}    permissions: {permissions}\n".encode()).files[0].mode


def test_a_script_is_written_and_run() -> None:
    script = b"#!/bin/sh\necho hello\n"
    path = "/var/lib/cloud/scripts/user-data"
    assert parse_user_data(script) == FirstBoot(
        files=(UserDataFile(path=path, content=script, mode=0o700),), commands=(path,)
    )


def test_a_cloud_config_has_files_and_commands() -> None:
    text = (
        ONE_FILE
        + '    content: "hello\\n"\nbootcmd: [date]\nruncmd:\n  - [/bin/echo, two words]\n  - echo $HOME; exit 3\n'
    )
    assert parse_user_data(text.encode()) == FirstBoot(
        each_boot=("date",),
        files=(UserDataFile(path="/etc/motd", content=b"hello\n", mode=0o644),),
        commands=("/bin/echo 'two words'", "echo $HOME; exit 3"),
    )


def test_packed_user_data_are_unpacked() -> None:
    assert parse_user_data(gzip.compress(b"#cloud-config\nruncmd: [ls]\n")).commands == ("ls",)


def test_packages_are_not_installed() -> None:
    parameters = b"#cloud-config\npackage_update: true\npackages: [slurmd]\n"
    assert parse_user_data(parameters) == FirstBoot(files=(), commands=())


def test_an_empty_cloud_config_has_no_steps() -> None:
    assert parse_user_data(b"#cloud-config\n") == FirstBoot(files=(), commands=())


@pytest.mark.parametrize("permissions", ['"0755"', "'755'", "0o755", "0755", "493"])
def test_permissions_are_octal_in_every_notation(permissions: str) -> None:
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
def test_the_content_of_a_file_is_decoded(lines: str, content: bytes) -> None:
    assert content_of(lines) == content


@pytest.mark.parametrize(
    ("user_data", "sentence"),
    [
        (b"hello", "the user data is neither a script (#!) nor a #cloud-config"),
        (b"\x1f\x8bhello", "the user data is damaged gzip data: "),
        (b"#cloud-config\n- ls\n", "the #cloud-config is a list, not a mapping"),
        (b"#cloud-config\n\xff\n", "the #cloud-config is not YAML: "),
        (b"#cloud-config\n{[\n", "the #cloud-config is not YAML: "),
        (
            b"#cloud-config\nusers: [me]\nmounts: [ls]\n",
            "the box does not support mounts, users of a #cloud-config",
        ),
        (b"#cloud-config\nruncmd: ls\n", "runcmd of the #cloud-config is a str, not a list"),
        (b"#cloud-config\nruncmd: [5]\n", "runcmd: 5 is neither a string nor a list"),
        (b"#cloud-config\nwrite_files: [x]\n", "write_files: 'x' has no absolute path"),
        (b"#cloud-config\nwrite_files: [{path: x}]\n", "write_files: {'path': 'x'} has no absolute path"),
        (
            f"{ONE_FILE}    append: true\n    defer: true\n".encode(),
            "the box does not support append, defer of write_files, as for /etc/motd",
        ),
        (
            f"{ONE_FILE}    owner: slurm:slurm\n".encode(),
            "write_files: /etc/motd has owner slurm:slurm; the box supports only root",
        ),
        (
            f"{ONE_FILE}    encoding: rot13\n".encode(),
            "write_files: /etc/motd has unknown encoding 'rot13'; expected one of ",
        ),
        (
            f"{ONE_FILE}    encoding: b64\n    content: x\n".encode(),
            "write_files: the content of /etc/motd is not b64: ",
        ),
        (f"{ONE_FILE}    encoding: gz\n    content: x\n".encode(), "write_files: the content of /etc/motd is not gz: "),
        (
            f"{ONE_FILE}    permissions: rwx\n".encode(),
            "write_files: /etc/motd has invalid permissions 'rwx'; expected an octal mode such as '0644'",
        ),
    ],
)
def test_unsupported_user_data_is_refused(user_data: bytes, sentence: str) -> None:
    with pytest.raises(UserDataError) as refused:
        parse_user_data(user_data)
    assert str(refused.value).startswith(sentence)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A disk whose first boot writes two files and prints a line."""
    disk = tmp_path / "disk"
    (disk / "box").mkdir(parents=True)
    spaced = f"{tmp_path}/a b/it's"
    files = (
        UserDataFile(path=f"{tmp_path}/new/run", content=b"\x00\xff", mode=0o750),
        UserDataFile(path=spaced, content=b"x", mode=0o600),
    )
    commands = ("echo one", "false", "echo 'two  three' $UNSET")
    write_boot_files(FirstBoot(each_boot=("echo each",), files=files, commands=commands), disk)
    return disk


def run_first_boot(disk: Path) -> str:
    command = ["sh", str(disk / "box/first-boot.sh")]
    return subprocess.run(command, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"}).stdout


@pytest.mark.parametrize("script", ["init.sh", "sbin/poweroff", "each-boot.sh", "first-boot.sh"])
def test_the_boot_scripts_pass_shellcheck(disk: Path, script: str) -> None:
    unset = "--exclude=SC2086,SC2154"  # the command of this test that names a variable on purpose
    checked = subprocess.run(["shellcheck", unset, str(disk / "box" / script)], capture_output=True, text=True)
    assert (checked.stdout, checked.returncode) == ("", 0)


def test_the_first_boot_continues_after_a_failed_command(disk: Path) -> None:
    assert run_first_boot(disk) == "one\ntwo  three\n"


def test_the_first_boot_writes_files_with_their_bytes_and_modes(disk: Path, tmp_path: Path) -> None:
    run_first_boot(disk)
    made = [tmp_path / "new/run", tmp_path / "a b/it's"]
    assert [(file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) for file in made] == [
        (b"\x00\xff", 0o750),
        (b"x", 0o600),
    ]


def test_boot_files_are_readable_by_root_only(disk: Path) -> None:
    assert stat.S_IMODE((disk / "box/files").stat().st_mode) == 0o700
