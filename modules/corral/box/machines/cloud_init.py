"""The first boot of a machine: the part of cloud-init that the box supports.

Files are written and commands run in cloud-init's order. Packages are not installed: a machine has the host's programs.
Other keys of a cloud-config are refused.
Source: cloud-init's documentation, "All cloud config examples", modules bootcmd, write_files, runcmd and
scripts_per_boot; cc_write_files.py for encodings and permissions; helpers.py, FileSemaphores, for what runs once.
"""

from __future__ import annotations

import base64
import gzip
import shlex
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

_KNOWN = frozenset({"bootcmd", "package_update", "packages", "write_files", "runcmd"})
_KNOWN_OF_A_FILE = frozenset({"path", "content", "permissions", "encoding", "owner"})
_ROOT = ("root", "root:root")
_PLAIN = "text/plain"
_BASE64, _GZIP = ("b64", "base64"), ("gz", "gzip")
_DECODERS: Mapping[str, tuple[Callable[[bytes], bytes], ...]] = {
    _PLAIN: (),
    **dict.fromkeys(_BASE64, (base64.b64decode,)),
    **dict.fromkeys(_GZIP, (gzip.decompress,)),
    **{f"{outer}+{inner}": (base64.b64decode, gzip.decompress) for outer in _GZIP for inner in _BASE64},
}
_DAMAGED = (ValueError, OSError, EOFError, zlib.error)  # raised by decoders
INIT = ("/bin/sh", "/box/init.sh")
# The first process of a machine: it boots the machine, adopts orphans, and ends the machine on SIGTERM.
_INIT = """#!/bin/sh
trap 'exit 0' TERM
{
    if [ -e /box/wait ]; then sleep "$(cat /box/wait)"; rm /box/wait; fi # a slow or hung boot
    if [ -e /box/sshd.sh ]; then sh /box/sshd.sh; fi
    instance=/var/lib/cloud/instance
    mkdir -p $instance/sem
    sh /box/each-boot.sh
    for script in /var/lib/cloud/scripts/per-boot/*; do
        if [ -x "$script" ]; then "$script"; fi
    done
    if [ ! -e $instance/sem/config_scripts_user ]; then
        touch $instance/sem/config_write_files $instance/sem/config_runcmd $instance/sem/config_scripts_user
        sh /box/first-boot.sh
    fi
} </dev/null &
while :; do
    sleep 3600 &
    wait $!
done
"""
# Replaces systemd's poweroff: machines of the box have no systemd.
_POWEROFF = """#!/bin/sh
kill -TERM 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserDataFile:
    """A file of the user data."""

    path: str
    content: bytes
    mode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstBoot:
    """The shell commands that the user data run at each boot; the files that they write, then the commands, once."""

    each_boot: tuple[str, ...] = ()
    files: tuple[UserDataFile, ...]
    commands: tuple[str, ...]


class UserDataError(Exception):
    """User data that the box does not support."""


def parse_user_data(user_data: bytes) -> FirstBoot:
    """The files and commands of user data. Raises UserDataError."""
    data = _unpacked(user_data)
    if data.startswith(b"#!"):
        script = UserDataFile(path="/var/lib/cloud/scripts/user-data", content=data, mode=0o700)
        return FirstBoot(files=(script,), commands=(script.path,))
    if not data.startswith(b"#cloud-config"):
        raise UserDataError("the user data is neither a script (#!) nor a #cloud-config")
    config = _config(data)
    return FirstBoot(
        each_boot=tuple(_command(entry) for entry in _list(config, "bootcmd")),
        files=tuple(_file(entry) for entry in _list(config, "write_files")),
        commands=tuple(_command(entry) for entry in _list(config, "runcmd")),
    )


def write_boot_files(boot: FirstBoot, disk: Path) -> None:
    """Write the files of the first boot and the init script below /box of a machine's disk."""
    directory = disk / "box"
    lines = ["#!/bin/sh"]
    (directory / "files").mkdir(mode=0o700, exist_ok=True)  # they may hold secrets
    for number, file in enumerate(boot.files):
        (directory / "files" / str(number)).write_bytes(file.content)
        lines.append(f'install -D -m {file.mode:o} "${{0%/*}}/files/{number}" {shlex.quote(file.path)}')
    lines += boot.commands
    (directory / "first-boot.sh").write_text("\n".join(lines) + "\n", encoding="utf-8")
    each_boot = ["#!/bin/sh", *boot.each_boot]
    (directory / "each-boot.sh").write_text("\n".join(each_boot) + "\n", encoding="utf-8")
    (directory / "init.sh").write_text(_INIT, encoding="utf-8")
    (directory / "sbin").mkdir(exist_ok=True)
    poweroff = directory / "sbin" / "poweroff"
    poweroff.write_text(_POWEROFF, encoding="utf-8")
    poweroff.chmod(0o755)


def _unpacked(user_data: bytes) -> bytes:
    if not user_data.startswith(b"\x1f\x8b"):
        return user_data
    try:
        return gzip.decompress(user_data)
    except _DAMAGED as error:
        raise UserDataError(f"the user data is damaged gzip data: {error}") from error


def _config(data: bytes) -> Mapping[str, Any]:
    try:
        config = yaml.safe_load(data) or {}
    except yaml.YAMLError as error:
        raise UserDataError(f"the #cloud-config is not YAML: {error}") from error
    if not isinstance(config, dict):
        raise UserDataError(f"the #cloud-config is a {type(config).__name__}, not a mapping")
    _refuse_unknown_keys(config, _KNOWN, "a #cloud-config")
    return config


def _list(config: Mapping[str, Any], key: str) -> Sequence[Any]:
    found = config.get(key) or []
    if not isinstance(found, list):
        raise UserDataError(f"{key} of the #cloud-config is a {type(found).__name__}, not a list")
    return found


def _file(entry: Any) -> UserDataFile:
    if not (isinstance(entry, dict) and PurePosixPath(str(entry.get("path", ""))).is_absolute()):
        raise UserDataError(f"write_files: {entry!r} has no absolute path")
    path = str(entry["path"])
    _refuse_unknown_keys(entry, _KNOWN_OF_A_FILE, f"write_files, as for {path}")
    if (owner := entry.get("owner", "root:root")) not in _ROOT:
        raise UserDataError(f"write_files: {path} has owner {owner}; the box supports only root")
    return UserDataFile(path=path, content=_content(path, entry), mode=_mode(path, entry.get("permissions", "0644")))


def _content(path: str, entry: Mapping[str, Any]) -> bytes:
    given, encoding = entry.get("content") or "", str(entry.get("encoding", _PLAIN)).lower()
    content = given if isinstance(given, bytes) else str(given).encode()
    if encoding not in _DECODERS:
        raise UserDataError(
            f"write_files: {path} has unknown encoding {encoding!r}; expected one of {', '.join(_DECODERS)}"
        )
    try:
        for decode in _DECODERS[encoding]:
            content = decode(content)
    except _DAMAGED as error:
        raise UserDataError(f"write_files: the content of {path} is not {encoding}: {error}") from error
    return content


def _mode(path: str, permissions: Any) -> int:
    """The file mode: YAML parses 0755 as a number; a string is octal."""
    try:
        mode = permissions if isinstance(permissions, int) else int(str(permissions), 8)
    except ValueError:
        mode = -1
    if not 0 <= mode <= 0o7777:
        raise UserDataError(
            f"write_files: {path} has invalid permissions {permissions!r}; expected an octal mode such as '0644'"
        )
    return mode


def _command(entry: Any) -> str:
    if isinstance(entry, str):
        return entry
    if not isinstance(entry, list):
        raise UserDataError(f"runcmd: {entry!r} is neither a string nor a list")
    return shlex.join(str(word) for word in entry)


def _refuse_unknown_keys(given: Mapping[Any, Any], known: frozenset[str], where: str) -> None:
    if unknown := sorted(str(key) for key in given if key not in known):
        raise UserDataError(f"the box does not support {', '.join(unknown)} of {where}")
