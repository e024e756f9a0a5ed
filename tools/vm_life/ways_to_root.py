"""Print the ways to root that a user of a machine has, a line each: the program of `no user becomes root`.

It runs on the machines, with their Python and nothing else. Root runs it first with the word `paths`, which lists what
root runs and reads; then the user runs it with that list. The kernel decides what the user may write, but for files of
their own, which they may open for themselves.
"""

from __future__ import annotations

import argparse
import contextlib
import grp
import os
import re
import shutil
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

SYSTEM_UIDS = range(1000)  # whose files anybody could write are a way, those of people are theirs to open
_CAPABILITY_BYTES = slice(4, 8), slice(12, 16)  # permitted, of a vfs_cap_data. Source: linux/capability.h
# What a program of a package may have and what makes nobody root: net_bind_service, net_broadcast, net_raw, and
# wake_alarm, by number.
_HARMLESS = {10, 11, 13, 35}
_CLOSED_TREES = ("boot", "etc", "opt", "root", "usr", "var/lib/corral")  # of which no user writes a part
_TREES_OF_USERS = ("home", "tmp", "var/tmp", "dev/shm", "run/user")
_LOCAL = {"btrfs", "ext4", "overlay", "tmpfs", "xfs"}  # file systems that are looked through
_SPECIFIERS = {"%t": "/run", "%S": "/var/lib", "%C": "/var/cache", "%L": "/var/log", "%E": "/etc"}
_UNITS = ("etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system", "run/systemd/generator")
_UNIT_LINES = re.compile(r"(Exec\w+|EnvironmentFile|WorkingDirectory|RootDirectory|PIDFile|Environment)\s*=(.*)")
_CRON = ("etc/crontab", "etc/anacrontab", "etc/cron.d", "var/spool/cron", "var/spool/anacron")
_CRON_SCRIPTS = tuple(f"etc/cron.{often}" for often in ("hourly", "daily", "weekly", "monthly"))
_BUS = tuple(f"{tree}/dbus-1/system-services" for tree in ("etc", "run", "usr/local/share", "usr/share", "usr/lib"))
_RULES = ("etc/udev/rules.d", "run/udev/rules.d", "usr/lib/udev/rules.d")
_LIBRARIES = ("etc/ld.so.conf", "etc/ld.so.conf.d", "etc/ld.so.preload")
_SLURM = ("etc/slurm", "run/slurm/conf")
_PATHS = ("etc/environment", "etc/login.defs", "etc/sudoers")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_WORD = re.compile(r"(?<![\w/.%}$])/[\w/.@%+~-]+")
_PATH_LINE = re.compile(r"^(?!\s*#).*\b(?:PATH|ENV_SUPATH|secure_path)\b[=\s\"]+(?:PATH=)?(\S+)", re.MULTILINE)


def listed_paths(root: Path) -> Iterator[tuple[str, str]]:
    """What root runs and reads, by what says so: units, cron, D-Bus, udev, Slurm, libraries, and root's PATH."""
    for file in _files(root, _UNITS):
        if file.suffix in (".service", ".socket", ".mount", ".timer", ".path", ".conf"):
            yield from _unit_paths(root, file)
    for trees, kind in ((_CRON, "cron"), (_BUS, "D-Bus"), (_RULES, "udev"), (_LIBRARIES, "library"), (_SLURM, "Slurm")):
        for file in _files(root, trees):
            yield kind, _within(root, file)
            for word in _words(_text(file)):
                yield f"{kind} {_within(root, file)}", word
    for file in _files(root, _CRON_SCRIPTS):
        yield "cron", _within(root, file)
    for directories in (_PATH, *(found for name in _PATHS for found in _PATH_LINE.findall(_text(root / name)))):
        for directory in directories.strip('"').split(":"):
            if directory.startswith("/"):
                yield "PATH", directory


def _unit_paths(root: Path, file: Path) -> Iterator[tuple[str, str]]:
    unit = _within(root, file)
    yield "unit", unit
    for line in _text(file).replace("\\\n", " ").split("\n"):
        if found := _UNIT_LINES.fullmatch(line.strip()):
            # A directory in which a program starts is read like one in its PATH.
            kind = f"directory of {unit}" if found[1] == "WorkingDirectory" else f"unit {unit}"
            for word in _words(found[2]):
                yield kind, word


def _words(text: str) -> Iterator[str]:
    """The absolute paths in a text without comments; of one with a specifier, the directory before it."""
    lines = "\n".join(line for line in text.split("\n") if not line.lstrip().startswith(("#", ";")))
    for specifier, directory in _SPECIFIERS.items():
        lines = lines.replace(specifier, directory)
    for word in _WORD.findall(lines):
        yield word if "%" not in word else word.partition("%")[0].rpartition("/")[0] or "/"


def _files(root: Path, trees: Iterable[str]) -> Iterator[Path]:
    for tree in trees:
        top = root / tree
        if top.is_file():
            yield top
        yield from sorted(path for path in top.rglob("*") if path.is_file())


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _within(root: Path, path: Path) -> str:
    return f"/{path.relative_to(root)}"


def open_part(root: Path, path: str, *, is_directory_read: bool = False) -> str | None:
    """The part of a path by which this user decides what it leads to; None if there is none.

    `is_directory_read`: programs are read from it, so that a directory is open in which anybody may make a file.
    """
    waiting = [part for part in path.split("/") if part not in ("", ".")][::-1]
    current, links = root, 0
    while waiting:
        directory, part = current, waiting.pop()
        current = directory.parent if part == ".." and directory != root else directory / part
        try:
            info = os.lstat(current)
        except FileNotFoundError:
            return _within(root, current) if os.access(directory, os.W_OK | os.X_OK) else None
        except OSError:  # this user does not even see it
            return None
        if _is_device(root, current):
            return None
        if info.st_uid == os.getuid() or (_may_replace(directory) and part != ".."):
            return _within(root, current)
        if stat.S_ISLNK(info.st_mode) and (links := links + 1) < 40:
            target = str(current.readlink())
            waiting += [part for part in target.split("/") if part not in ("", ".")][::-1]
            current = root if target.startswith("/") else directory
    return _within(root, current) if _is_open(current, is_directory_read) else None


def _is_device(root: Path, path: Path) -> bool:
    return path.relative_to(root).parts[:1] in (("proc",), ("sys",)) or not (
        path.is_symlink() or path.is_file() or path.is_dir()
    )


def _may_replace(directory: Path) -> bool:
    """Whether this user may put something else in the place of what is in a directory and not theirs."""
    return os.access(directory, os.W_OK | os.X_OK) and not directory.stat().st_mode & stat.S_ISVTX


def _is_open(path: Path, is_directory_read: bool) -> bool:
    return os.access(path, os.W_OK) if is_directory_read or not path.is_dir() else _may_replace(path)


def listed_ways(root: Path, lines: Iterable[str]) -> Iterator[str]:
    """Those of the listed paths that this user decides about."""
    for line in sorted(set(lines)):
        kind, _, path = line.partition("\t")
        is_read = kind.startswith(("directory of", "library", "PATH"))
        if part := open_part(root, path, is_directory_read=is_read):
            yield f"{kind}: {path} by {part}" if part != path else f"{kind}: {path}"


def file_ways(root: Path, known_sockets: str) -> Iterator[str]:
    """What the files of the machine let this user do, in all that they can see, but for what packages have brought.

    `known_sockets`: describes the paths of sockets that everybody may connect to.
    """
    packaged = _packaged(root)
    for path, info in _walk(root):
        name = _within(root, path)
        is_packaged = name in packaged or name.removeprefix("/usr") in packaged
        is_of_system, is_for_all = info.st_uid in SYSTEM_UIDS, bool(info.st_mode & stat.S_IWOTH)
        if stat.S_ISDIR(info.st_mode) and is_of_system and is_for_all and not info.st_mode & stat.S_ISVTX:
            yield f"directory open to all: {name}"
        elif _is_in(name, _CLOSED_TREES):
            if _may_write(path, info):
                yield f"writable: {name}"
        elif stat.S_ISREG(info.st_mode) and is_of_system and is_for_all and not _is_in(name, _TREES_OF_USERS):
            yield f"writable: {name}"
        if stat.S_ISREG(info.st_mode) and info.st_mode & (stat.S_ISUID | stat.S_ISGID) and not is_packaged:
            yield f"setuid: {name}"
        if found := _capabilities(path, info) - (_HARMLESS if is_packaged else set()):
            yield f"capabilities: {name} {sorted(found)}"
        is_unknown = stat.S_ISSOCK(info.st_mode) and is_of_system and not re.fullmatch(known_sockets, name)
        if is_unknown and _connects(str(path)):
            yield f"socket: {name}"
    for file in _files(root, _BUS):
        if _within(root, file) not in packaged:
            yield f"D-Bus service of no package: {_within(root, file)}"


def _is_in(name: str, trees: Sequence[str]) -> bool:
    return any(name[1:] == tree or name[1:].startswith(f"{tree}/") for tree in trees)


def _may_write(path: Path, info: os.stat_result) -> bool:
    is_writable = stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode)
    return is_writable and (info.st_uid == os.getuid() or os.access(path, os.W_OK))


def _walk(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """What is on the machine's own file systems and may be seen."""
    seen: set[int] = set()
    for top in (root, *(_mounts(_text(Path("/proc/self/mounts"))) if root == Path("/") else ())):
        with contextlib.suppress(OSError):
            device = top.stat().st_dev
            if device not in seen:
                seen.add(device)
                yield from _walk_one(top, device)


def _mounts(table: str) -> Iterator[Path]:
    for row in (line.split(" ") for line in table.split("\n")):
        if len(row) > 2 and row[2] in _LOCAL:
            yield Path(row[1])


def _walk_one(top: Path, device: int) -> Iterator[tuple[Path, os.stat_result]]:
    waiting = [top]
    while waiting:
        for path in _entries(waiting.pop()):
            with contextlib.suppress(OSError):
                info = os.lstat(path)
                yield path, info
                # Of a file an overlay reports the device of its layer.
                waiting += [path] if stat.S_ISDIR(info.st_mode) and info.st_dev == device else []


def _entries(directory: Path) -> Sequence[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return ()


def _capabilities(path: Path, info: os.stat_result) -> set[int]:
    """The numbers of the capabilities that a program gets which this user may run."""
    if not (stat.S_ISREG(info.st_mode) and os.access(path, os.X_OK)):
        return set()
    try:
        value = os.getxattr(path, "security.capability", follow_symlinks=False)
    except OSError:
        return set()
    low, high = (int.from_bytes(value[part], "little") for part in _CAPABILITY_BYTES)
    return {number for number in range(64) if (low | high << 32) >> number & 1}


def _packaged(root: Path) -> frozenset[str]:
    """The files that dpkg has installed."""
    lists = (root / "var/lib/dpkg/info").glob("*.list")
    return frozenset(line for file in lists for line in _text(file).split("\n"))


def abstract_ways(table: str, known: str) -> Iterator[str]:
    """The sockets without a path that listen and to which this user connects, of the text of /proc/net/unix."""
    rows = (line.split() for line in table.split("\n")[1:])
    names = {row[7] for row in rows if len(row) == 8 and row[7].startswith("@") and int(row[3], 16) & _ACCEPTS}
    for name in sorted(names):
        if not re.fullmatch(known, name) and _connects("\0" + name[1:]):
            yield f"socket: {name}"


_ACCEPTS = 1 << 16  # __SO_ACCEPTCON of linux/net.h


def _connects(address: str) -> bool:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        with socket.socket(socket.AF_UNIX, kind) as one, contextlib.suppress(OSError):
            one.settimeout(10)
            one.connect(address)
            return True
    return False


def command_ways(groups: Iterable[str]) -> Iterator[str]:
    """What commands let this user do."""
    for number in sorted({os.getgid(), *os.getgroups()}):
        with contextlib.suppress(KeyError):
            if (name := grp.getgrgid(number).gr_name) in groups:
                yield f"group: {name}"
    if _succeeds("sudo", "-n", "true"):
        yield "sudo"
    if _succeeds("systemd-run", "--quiet", "--no-ask-password", "true"):
        yield "systemd-run"
    for user in ("root", "slurm"):
        if _succeeds("mariadb", f"--user={user}", "--execute=SELECT 1"):
            yield f"MariaDB: {user}"
    for action in _output("pkaction").split():
        # It takes no `--action-id=ACTION`: pkcheck(1).
        if _succeeds("pkcheck", "--action-id", action, "--process", str(os.getpid())):
            yield f"polkit: {action}"


def _succeeds(*command: str) -> bool:
    return bool(shutil.which(command[0])) and _run(*command).returncode == 0


def _output(*command: str) -> str:
    return _run(*command).stdout if shutil.which(command[0]) else ""


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    """A command that nobody answers; after a minute it counts as refused."""
    nothing = subprocess.DEVNULL
    try:
        return subprocess.run(
            command, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing, text=True, check=False, timeout=60
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", "")


def capability_value(*numbers: int) -> bytes:
    """What the attribute `security.capability` of a program holds that gets these when anybody runs it."""
    bits = sum(1 << number for number in numbers)
    return struct.pack("<5I", 0x02000001, bits & 0xFFFFFFFF, 0, bits >> 32, 0)


def main(words: Sequence[str]) -> int:
    """Print what root runs and reads (`paths`), or what files and commands let who runs this do."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("what", nargs="+", choices=("paths", "files", "commands"))
    arguments.add_argument("--root", type=Path, default=Path("/"))
    arguments.add_argument("--list", type=Path)
    arguments.add_argument("--groups", default="")
    arguments.add_argument("--known-sockets", default="")
    chosen = arguments.parse_args(words)
    if "paths" in chosen.what:
        print("\n".join(sorted({f"{kind}\t{path}" for kind, path in listed_paths(chosen.root)})))
    if "files" in chosen.what:
        for way in (
            *listed_ways(chosen.root, chosen.list.read_text(encoding="utf-8").splitlines()),
            *file_ways(chosen.root, chosen.known_sockets),
            *abstract_ways(_text(Path("/proc/net/unix")), chosen.known_sockets),
        ):
            print(way)
    if "commands" in chosen.what:
        for way in command_ways(chosen.groups.split()):
            print(way)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
