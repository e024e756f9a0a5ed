"""The program of `make vm-life` that looks for ways to root, on a small machine of files: each one and no more.

Who looks is an ordinary user, so the kernel decides what they may write.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from tools.vm_life import ways_to_root
from tools.vm_life.ways_to_root import abstract_ways, capability_value, command_ways

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="looking as another user needs root: run the tests as root")
USER = 65534
PROGRAM = Path(ways_to_root.__file__).read_text(encoding="utf-8")
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or "python3"
PATHS = "\n".join(("[Service]", "ExecStart=-/usr/bin/program --log=/var/log/program", "EnvironmentFile=-/etc/none"))
NET_RAW, SYS_ADMIN = 13, 21


@pytest.fixture
def machine() -> Iterator[Path]:
    """A root directory that everybody may pass, with a unit, a program of a package, and directories for all."""
    with tempfile.TemporaryDirectory(prefix="corral-ways-") as name:
        root = Path(name)
        root.chmod(0o755)
        for directory in ("etc/systemd/system", "usr/bin", "usr/local/sbin", "var/log", "home/admin", "run"):
            (root / directory).mkdir(parents=True)
        for directory in ("tmp", "var/tmp"):
            (root / directory).mkdir()
            (root / directory).chmod(0o1777)
        os.chown(root / "home/admin", USER, USER)
        write(root, "etc/systemd/system/a.service", PATHS)
        write(root, "usr/bin/program", "", 0o4755)
        write(root, "var/lib/dpkg/info/program.list", "/bin/program\n")
        yield root


def write(root: Path, name: str, text: str, mode: int = 0o644) -> Path:
    """A file of root's."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def unit(root: Path, line: str) -> None:
    write(root, "etc/systemd/system/b.service", f"[Service]\n{line}\n")


def run(root: Path, *words: str, user: int = 0) -> list[str]:
    """The lines of the program for a user."""
    command = (PYTHON, "-I", "-", *words, "--root", str(root))
    nobody: dict[str, int | Sequence[int]] = {"user": user, "group": user, "extra_groups": ()} if user else {}
    done = subprocess.run(command, input=PROGRAM, capture_output=True, text=True, check=False, cwd="/", **nobody)  # type: ignore[call-overload]
    assert (done.returncode, done.stderr) == (0, "")
    return sorted(done.stdout.splitlines())


def ways(root: Path) -> list[str]:
    """The ways that files of the machine are for the user."""
    listed = write(root, "run/paths", "\n".join(run(root, "paths")))
    found = run(root, "files", "--list", str(listed), "--known-sockets", "/run/known", user=USER)
    return [line for line in found if not line.startswith("socket: @")]


def link_to_users(root: Path) -> None:
    unit(root, "ExecStart=@!/usr/bin/linked name")
    (root / "usr/bin/linked").symlink_to("/home/admin/program")


def users_own(root: Path) -> None:
    unit(root, "EnvironmentFile=-/etc/own/file")
    os.chown(write(root, "etc/own/file", "", 0o400), USER, USER)


def capable(root: Path) -> None:
    os.setxattr(write(root, "usr/bin/capable", "", 0o755), "security.capability", capability_value(NET_RAW, SYS_ADMIN))


def listening(root: Path, name: str, mode: int) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(root / name))
    (root / name).chmod(mode)


def world_directory(root: Path) -> None:
    (root / "var/lib/open").mkdir()
    (root / "var/lib/open").chmod(0o777)


def replaced_part(root: Path) -> None:
    world_directory(root)
    unit(root, "ExecStartPre=+/var/lib/open/of-root/program")
    write(root, "var/lib/open/of-root/program", "", 0o755)


UNIT = "unit /etc/systemd/system/b.service"
OPEN = "directory open to all: /var/lib/open"


@pytest.mark.parametrize(
    ("plant", "found"),
    [
        (lambda root: unit(root, "ExecStart=/var/tmp/new"), [f"{UNIT}: /var/tmp/new"]),
        (lambda root: unit(root, "ExecStopPost=/bin/sh -c '/tmp/a.sh'"), [f"{UNIT}: /tmp/a.sh"]),
        (lambda root: unit(root, "Environment=A=1 PYTHONPATH=/tmp/new"), [f"{UNIT}: /tmp/new"]),
        (lambda root: unit(root, "WorkingDirectory=/tmp"), ["directory of /etc/systemd/system/b.service: /tmp"]),
        (lambda root: unit(root, "ExecStart=/home/admin/%i/run"), [f"{UNIT}: /home/admin"]),
        (lambda root: unit(root, "PIDFile=%t/../tmp/pid"), [f"{UNIT}: /run/../tmp/pid by /tmp/pid"]),
        (link_to_users, [f"{UNIT}: /usr/bin/linked by /home/admin"]),
        (users_own, [f"{UNIT}: /etc/own/file", "writable: /etc/own/file"]),
        (replaced_part, [OPEN, f"{UNIT}: /var/lib/open/of-root/program by /var/lib/open/of-root"]),
        (lambda root: write(root, "etc/cron.d/a", "* * * * * root /tmp/a"), ["cron /etc/cron.d/a: /tmp/a"]),
        (
            lambda root: write(root, "var/spool/cron/crontabs/root", "@daily /tmp/a", 0o600),
            ["cron /var/spool/cron/crontabs/root: /tmp/a"],
        ),
        (
            lambda root: write(root, "etc/cron.daily/a", "", 0o777),
            ["cron: /etc/cron.daily/a", "writable: /etc/cron.daily/a"],
        ),
        (
            lambda root: write(root, "usr/share/dbus-1/system-services/a.service", "Exec=/tmp/a"),
            [
                "D-Bus /usr/share/dbus-1/system-services/a.service: /tmp/a",
                "D-Bus service of no package: /usr/share/dbus-1/system-services/a.service",
            ],
        ),
        (
            lambda root: write(root, "etc/udev/rules.d/a.rules", 'ACTION=="add", RUN+="/tmp/a"'),
            ["udev /etc/udev/rules.d/a.rules: /tmp/a"],
        ),
        (lambda root: write(root, "etc/ld.so.conf.d/a.conf", "/tmp"), ["library /etc/ld.so.conf.d/a.conf: /tmp"]),
        (lambda root: write(root, "etc/slurm/slurm.conf", "Epilog=/tmp/a"), ["Slurm /etc/slurm/slurm.conf: /tmp/a"]),
        (lambda root: write(root, "etc/environment", 'PATH="/usr/bin:/tmp"'), ["PATH: /tmp"]),
        (lambda root: write(root, "etc/login.defs", "ENV_SUPATH\tPATH=/tmp:/bin"), ["PATH: /tmp"]),
        (lambda root: write(root, "etc/sudoers", 'Defaults secure_path="/bin:/tmp"', 0o440), ["PATH: /tmp"]),
        (lambda root: write(root, "usr/local/sbin/a", "", 0o2755), ["setuid: /usr/local/sbin/a"]),
        (capable, ["capabilities: /usr/bin/capable [13, 21]"]),
        (world_directory, [OPEN]),
        (lambda root: write(root, "var/lib/file", "", 0o666), ["writable: /var/lib/file"]),
        (lambda root: write(root, "opt/program/lib", "", 0o666), ["writable: /opt/program/lib"]),
    ],
)
def test_a_way_to_root_is_found(machine: Path, plant: Callable[[Path], object], found: list[str]) -> None:
    plant(machine)
    assert ways(machine) == found


def capable_for_roots_group(root: Path) -> None:
    capable(root)
    (root / "usr/bin/capable").chmod(0o750)


def packaged_net_raw(root: Path) -> None:
    os.setxattr(root / "usr/bin/program", "security.capability", capability_value(NET_RAW))


@pytest.mark.parametrize(
    "plant",
    [
        lambda root: None,
        packaged_net_raw,
        capable_for_roots_group,
        lambda root: unit(root, "# ExecStart=/tmp/new"),
        lambda root: unit(root, "ExecStart=/tmp/of-root") or write(root, "tmp/of-root", ""),
        lambda root: unit(root, "ExecStart=/bin/sh -c 'exec >/dev/null'"),
        lambda root: unit(root, "ExecStart=$HOME/tmp/a ${HOME}/tmp/b"),
        lambda root: write(root, "tmp/of-root", "", 0o666),
        lambda root: listening(root, "run/known", 0o666),
        lambda root: listening(root, "run/closed", 0o600),
        lambda root: write(root, "etc/hidden/a", "", 0o666).parent.chmod(0o700),
    ],
)
def test_what_makes_nobody_root_is_not_listed(machine: Path, plant: Callable[[Path], object]) -> None:
    plant(machine)
    assert ways(machine) == []


def test_a_socket_of_root_that_a_user_connects_to_is_found(machine: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
        one.bind(str(machine / "run/open"))
        (machine / "run/open").chmod(0o666)
        one.listen()
        assert ways(machine) == ["socket: /run/open"]


def test_a_socket_without_a_path_is_found() -> None:
    name = f"corral-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as silent:
        one.bind(f"\0{name}")
        one.listen()
        silent.bind(f"\0{name}-silent")
        table = Path("/proc/net/unix").read_text(encoding="utf-8")
        assert [way for way in abstract_ways(table, "") if name in way] == [f"socket: @{name}"]


# Of Debian's polkitd 126: `pkcheck: Unexpected argument `--action-id=...'` and 126 for an option with its value.
PKCHECK = """#!/bin/sh
[ "$1 $3" = "--action-id --process" ] || exit 126
[ "$2" = org.example.may ]
"""


def test_an_action_that_polkit_allows_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "pkaction", "#!/bin/sh\nprintf 'org.example.may\\norg.example.may-not\\n'\n", 0o755)
    write(tmp_path, "pkcheck", PKCHECK, 0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert [way for way in command_ways(()) if "polkit" in way] == ["polkit: org.example.may"]


def test_a_group_whose_members_become_root_is_found() -> None:
    assert "group: root" in run(Path("/"), "commands", "--groups", "disk root")
