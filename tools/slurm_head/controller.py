"""Run a real slurmctld with a cluster's rendered files on this machine: only the head, with its real name and address.

Everything runs in namespaces of its own (network, hostname, mounts, processes). So the files are used unchanged, any
number of clusters run in parallel, and the system's own Slurm, munge and network are not touched. It needs root or user
namespaces. No nodes run here: nodes that Slurm resumes stay powered down. Unless it is wanted, there is no slurmdbd
either, and its lines in slurm.conf are removed.

Slurm is that of this machine, or of another system, whose root directory is only read.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from corral.agent.config.file_placements import placements_for
from corral.agent.file_install import install
from corral.model.cluster import ClusterPlan
from corral.model.enums import Role
from corral.model.serialization import from_json

PROGRAMS = ("slurmctld", "scontrol", "munged", "ip")
NAMESPACE_PROGRAMS = ("unshare", "nsenter", "pivot_root")  # always those of this machine
START_TIMEOUT_S = 30  # takes 0.3 s, many times that on a busy machine
DATABASE_TIMEOUT_S = 180  # MariaDB is set up first: 5 s, more than 30 s were seen on a busy machine
STOP_TIMEOUT_S = 10  # slurmctld saves its state; after that it is killed
COMMAND_TIMEOUT_S = 120  # scontrol itself times out after MessageTimeout; scripts that run it often take longer
_OF_SLURMDBD = frozenset(
    {f"AccountingStorage{what}" for what in ("Enforce", "Host", "TRES", "Type")} | {"JobAcctGatherType"}
)
_OWN_USER = "1000"  # uid of an ordinary user inside the namespaces
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_SCRIPT = Path(__file__).with_name("head.sh")
# Replaces this machine's root with another system's, read-only, for the process that becomes head.sh.
_MOVE = """
set -eu
root=$1 directory=$2 script=$3
shift 3
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
mount -t tmpfs tmpfs "$root/tmp"
mkdir "$root/tmp/head"
mount --bind "$directory" "$root/tmp/head"
cat "$script" >"$root/tmp/head.sh"
cd "$root"
pivot_root . .
umount -l .
exec /bin/sh /tmp/head.sh /tmp/head "$@"
"""


class SlurmError(Exception):
    """A controller cannot run here; the text is for the user, its first line is a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """A running slurmctld. `process` holds its namespaces; `user` is empty if they are root's."""

    process: subprocess.Popen[str]
    directory: Path
    user: str

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command on the head. Does not check the exit code."""
        entered = self.entered(*command)
        return subprocess.run(
            entered, capture_output=True, text=True, check=False, timeout=COMMAND_TIMEOUT_S, env=_environment()
        )

    def log(self) -> str:
        """Everything that slurmctld has logged."""
        return (self.directory / "slurmctld.out").read_text(encoding="utf-8")

    def update(self, files: Mapping[str, str]) -> None:
        """Replace the files and restart slurmctld, which does not disturb running jobs. Raises SlurmError.

        Before Slurm 23.11, `scontrol reconfigure` with another number of nodes ends slurmctld ("You have to restart").
        """
        _install(files if (self.directory / "database").exists() else without_accounting(files), self.directory)
        self.restart()

    def restart(self) -> None:
        """Restart slurmctld with the current files. Raises SlurmError."""
        assert self.process.stdin is not None
        self.process.stdin.write("restart\n")
        self.process.stdin.flush()
        _wait_until_ready(self.process, self.directory)

    def entered(self, *command: str) -> tuple[str, ...]:
        """The words that run this command on the head."""
        pid = self.process.pid
        target = (f"--target={pid}", f"--pid=/proc/{pid}/ns/pid_for_children", "--net", "--uts", "--mount")
        if not self.user:
            return ("nsenter", *target, "--", *command)
        nested = ("unshare", "--user", f"--map-user={self.user}", f"--map-group={self.user}", "--")
        return ("nsenter", *target, "--user", "--preserve-credentials", "--", *nested, *command)


@contextlib.contextmanager
def running_slurmctld(
    files: Mapping[str, str], directory: Path, root: Path = Path("/"), *, accounting: bool = False
) -> Iterator[Controller]:
    """Run slurmctld with these files, by path below the cluster's prefix, until the block ends.

    The directory holds its state and log. `root`: the root directory of the system that Slurm is taken from.
    slurmctld ends with this process, even after kill -9. `accounting`: also run MariaDB and slurmdbd, as root alone.
    Raises SlurmError with the end of the log if it does not start.
    """
    _check_programs(root)
    directory = directory.absolute()
    user = "" if os.geteuid() == 0 else _OWN_USER
    plan = from_json(ClusterPlan, files["cluster.json"])
    settings = host_settings(files)
    _prepare(directory, plan, settings, user)
    if not user:
        _chown(directory, settings, root)
    _install(files if accounting else without_accounting(files), directory)
    process = _start(_head(directory, root), directory, plan, user)
    try:
        _wait_until_ready(process, directory, DATABASE_TIMEOUT_S if accounting else START_TIMEOUT_S)
        yield Controller(process=process, directory=directory, user=user)
    finally:
        _stop(process)


def without_accounting(files: Mapping[str, str]) -> Mapping[str, str]:
    """The files for a slurmctld without slurmdbd. With accounting in them, its first start fails."""
    kept = {name: text for name, text in files.items() if not name.startswith("accounting/")}
    for name in ("slurm/slurm.conf", "slurm/host.conf"):
        lines = files[name].splitlines(keepends=True)
        kept[name] = "".join(line for line in lines if line.split("=")[0] not in _OF_SLURMDBD)
    return kept


def read_files(directory: Path) -> Mapping[str, str]:
    """The text of every file below the directory by its path."""
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def host_settings(files: Mapping[str, str]) -> Mapping[str, str]:
    """The settings of host.conf by key."""
    lines = (line for line in files["slurm/host.conf"].splitlines() if "=" in line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)


def _check_programs(root: Path) -> None:
    if sys.platform != "linux":
        raise SlurmError(f"slurmctld needs Linux, and this is {sys.platform} - use WSL or a Linux machine")
    inside = os.pathsep.join(f"{root}/{directory}" for directory in _PATH.split(os.pathsep))
    missing = [program for program in PROGRAMS if not shutil.which(program, path=inside)]
    missing += [program for program in NAMESPACE_PROGRAMS if not shutil.which(program, path=_PATH)]
    if missing:
        where = "" if root == Path("/") else f" in {root}"
        raise SlurmError(f"{', '.join(missing)} not found{where} - install slurmctld, slurm-client, munge, iproute2")


def _prepare(directory: Path, plan: ClusterPlan, settings: Mapping[str, str], user: str) -> None:
    """Create what the daemons need: directories, a munge key, and names that resolve without DNS."""
    for name in (
        "/etc/slurm",
        "/opt",
        "/var/tmp",  # noqa: S108 - in the head of a test
        "/var/lib/munge",
        "/var/log/munge",
        *_slurmctld_directories(settings),
    ):
        (directory / name.lstrip("/")).mkdir(parents=True, exist_ok=True)
    directory.chmod(0o755)  # so that the daemons' users can enter; secret files have modes of their own
    texts = {
        "etc/hosts": f"127.0.0.1 localhost\n{plan.head.address} {plan.head.host_name}\n",
        "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
        "etc/passwd": f"{settings['SlurmUser']}:x:{user}:{user}::/:/bin/sh\nroot:x:0:0::/:/bin/sh\n",
    }
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")
    key = directory / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))


def _slurmctld_directories(settings: Mapping[str, str]) -> Sequence[str]:
    """The directories that slurmctld writes to."""
    return settings["StateSaveLocation"], str(Path(settings["SlurmctldLogFile"]).parent)


def _chown(directory: Path, settings: Mapping[str, str], root: Path) -> None:
    """Give the directories that slurmctld writes to its user."""
    uid = _uid(settings["SlurmUser"], root)
    for name in _slurmctld_directories(settings):
        os.chown(directory / name.lstrip("/"), uid, -1)


def _uid(user: str, root: Path) -> int:
    """The user's id in the system with this root directory."""
    try:
        if root == Path("/"):
            return pwd.getpwnam(user).pw_uid
        lines = (line.split(":") for line in (root / "etc/passwd").read_text(encoding="utf-8").splitlines())
        return {fields[0]: int(fields[2]) for fields in lines}[user]
    except KeyError as error:
        raise SlurmError(f"there is no user {user!r} - install Debian's slurmctld package, which creates it") from error


def _install(files: Mapping[str, str], directory: Path) -> None:
    """Install the files as the agent does on a head."""
    install(placements_for({name: text.encode() for name, text in files.items()}, Role.HEAD, None), directory)


def _head(directory: Path, root: Path) -> Sequence[str]:
    """The command that becomes the head inside the namespaces, without its arguments from the plan."""
    if root == Path("/"):
        return "/bin/sh", str(_SCRIPT), str(directory)
    return "/bin/sh", "-c", _MOVE, "move", str(root), str(directory), str(_SCRIPT)


def _start(command: Sequence[str], directory: Path, plan: ClusterPlan, user: str) -> subprocess.Popen[str]:
    """Start the process that holds the namespaces. It ends when its standard input closes."""
    namespaces = ("--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    own = ("--user", "--map-root-user") if user else ()
    head = (plan.head.host_name, str(plan.head.address), user)
    with (directory / "head.out").open("w", encoding="utf-8") as errors:
        return subprocess.Popen(
            ["unshare", *own, *namespaces, *command, *head],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=_environment(),
            start_new_session=True,  # Ctrl-C reaches only the caller, which stops it
        )


def _wait_until_ready(process: subprocess.Popen[str], directory: Path, timeout_s: int = START_TIMEOUT_S) -> None:
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], timeout_s)
    if readable and process.stdout.readline() == "ready\n":
        return
    log = _end_of_log(directory)
    if log.startswith("unshare:"):
        raise SlurmError(f"cannot create namespaces for slurmctld - run as root, or allow user namespaces\n{log}")
    problem = "exited at once" if readable else f"did not answer within {timeout_s} s"
    raise SlurmError(f"slurmctld {problem}\n{log}")


def _end_of_log(directory: Path) -> str:
    logs = (directory / name for name in ("head.out", "slurmctld.out"))
    lines = [line for log in logs if log.exists() for line in log.read_text(encoding="utf-8").splitlines()]
    return "\n".join(lines[-15:])


def _stop(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


def _environment() -> Mapping[str, str]:
    return {"PATH": _PATH, "LANG": "C.UTF-8"}
