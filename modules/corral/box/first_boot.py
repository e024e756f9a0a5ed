"""What a machine of the box does with its user data when it boots for the first time: cloud-init's part, and no more.

A machine of the box has this system's own programs, so packages are not installed; files are written, commands are run,
in the order that cloud-init has. What else a cloud-config may ask for is refused, not left out silently.
Source: cloud-init's documentation, "All cloud config examples", modules write_files, runcmd and scripts_per_boot;
cc_write_files.py for encodings and permissions.
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

_KNOWN = frozenset({"package_update", "packages", "write_files", "runcmd"})
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
_DAMAGED = (ValueError, OSError, EOFError, zlib.error)  # what decoders raise
INIT = ("/bin/sh", "/box/init.sh")
# The first process of a machine: it boots, adopts what daemons leave behind, and ends the machine when it is asked to.
_INIT = """#!/bin/sh
trap 'exit 0' TERM
{
    if [ -e /box/wait ]; then sleep "$(cat /box/wait)"; rm /box/wait; fi # a slow boot, or one that hangs
    if [ -e /box/sshd.sh ]; then sh /box/sshd.sh; fi
    for script in /var/lib/cloud/scripts/per-boot/*; do
        if [ -x "$script" ]; then "$script"; fi
    done
    if [ ! -e /box/booted ]; then
        : >/box/booted
        sh /box/first-boot.sh
    fi
} </dev/null &
while :; do
    sleep 3600 &
    wait $!
done
"""
# In the place of systemd's: there is none in a machine of the box.
_POWEROFF = """#!/bin/sh
kill -TERM 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file that user data ask for."""

    path: str
    content: bytes
    mode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstBoot:
    """What user data ask for: files to write, then shell commands to run."""

    files: tuple[File, ...]
    commands: tuple[str, ...]


class UserDataError(Exception):
    """User data that a machine of the box cannot follow."""


def read_user_data(user_data: bytes) -> FirstBoot:
    """What these user data ask for. Raises UserDataError."""
    data = _unpacked(user_data)
    if data.startswith(b"#!"):
        script = File(path="/var/lib/cloud/scripts/user-data", content=data, mode=0o700)
        return FirstBoot(files=(script,), commands=(script.path,))
    if not data.startswith(b"#cloud-config"):
        raise UserDataError("user data are neither a script (#!) nor a #cloud-config")
    config = _config(data)
    return FirstBoot(
        files=tuple(_file(wanted) for wanted in _list(config, "write_files")),
        commands=tuple(_command(wanted) for wanted in _list(config, "runcmd")),
    )


def lay_down(boot: FirstBoot, disk: Path) -> None:
    """Puts what the first boot needs below /box of a machine's disk, and its init."""
    place = disk / "box"
    lines = ["#!/bin/sh"]
    (place / "files").mkdir(mode=0o700, exist_ok=True)  # they may hold secrets
    for number, file in enumerate(boot.files):
        (place / "files" / str(number)).write_bytes(file.content)
        lines.append(f'install -D -m {file.mode:o} "${{0%/*}}/files/{number}" {shlex.quote(file.path)}')
    lines += boot.commands
    (place / "first-boot.sh").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (place / "init.sh").write_text(_INIT, encoding="utf-8")
    (place / "sbin").mkdir(exist_ok=True)
    poweroff = place / "sbin" / "poweroff"
    poweroff.write_text(_POWEROFF, encoding="utf-8")
    poweroff.chmod(0o755)


def _unpacked(user_data: bytes) -> bytes:
    if not user_data.startswith(b"\x1f\x8b"):
        return user_data
    try:
        return gzip.decompress(user_data)
    except _DAMAGED as error:
        raise UserDataError(f"user data begin like gzip and are not: {error}") from error


def _config(data: bytes) -> Mapping[str, Any]:
    try:
        config = yaml.safe_load(data) or {}
    except yaml.YAMLError as error:
        raise UserDataError(f"the #cloud-config is no YAML: {error}") from error
    if not isinstance(config, dict):
        raise UserDataError(f"the #cloud-config is a {type(config).__name__}, not a mapping")
    _refuse_strange(config, _KNOWN, "a #cloud-config")
    return config


def _list(config: Mapping[str, Any], key: str) -> Sequence[Any]:
    found = config.get(key) or []
    if not isinstance(found, list):
        raise UserDataError(f"{key} of the #cloud-config is a {type(found).__name__}, not a list")
    return found


def _file(wanted: Any) -> File:
    if not (isinstance(wanted, dict) and PurePosixPath(str(wanted.get("path", ""))).is_absolute()):
        raise UserDataError(f"write_files: {wanted!r} names no absolute path")
    path = str(wanted["path"])
    _refuse_strange(wanted, _KNOWN_OF_A_FILE, f"write_files, as for {path}")
    if (owner := wanted.get("owner", "root:root")) not in _ROOT:
        raise UserDataError(f"write_files: {path} is for {owner}, the box's machines write files of root alone")
    return File(path=path, content=_content(path, wanted), mode=_mode(path, wanted.get("permissions", "0644")))


def _content(path: str, wanted: Mapping[str, Any]) -> bytes:
    given, encoding = wanted.get("content") or "", str(wanted.get("encoding", _PLAIN)).lower()
    content = given if isinstance(given, bytes) else str(given).encode()
    if encoding not in _DECODERS:
        raise UserDataError(f"write_files: {path} has encoding {encoding!r}, known are {', '.join(_DECODERS)}")
    try:
        for decode in _DECODERS[encoding]:
            content = decode(content)
    except _DAMAGED as error:
        raise UserDataError(f"write_files: the content of {path} is not {encoding}: {error}") from error
    return content


def _mode(path: str, permissions: Any) -> int:
    """YAML reads 0755 as a number already; what it reads as a text is octal."""
    try:
        mode = permissions if isinstance(permissions, int) else int(str(permissions), 8)
    except ValueError:
        mode = -1
    if not 0 <= mode <= 0o7777:
        raise UserDataError(f"write_files: {path} has permissions {permissions!r}, such as '0644' would be right")
    return mode


def _command(wanted: Any) -> str:
    if isinstance(wanted, str):
        return wanted
    if not isinstance(wanted, list):
        raise UserDataError(f"runcmd: {wanted!r} is neither a text nor a list")
    return shlex.join(str(word) for word in wanted)


def _refuse_strange(given: Mapping[Any, Any], known: frozenset[str], where: str) -> None:
    if strange := sorted(str(key) for key in given if key not in known):
        raise UserDataError(f"the box's machines do not know {', '.join(strange)} of {where}")
