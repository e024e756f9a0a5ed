"""A real slurmctld with a cluster's rendered files, on this machine: the head alone, with its true name and address.

Everything runs in namespaces of its own (network, hostname, mounts, processes), so the files are used as they are, any
number of clusters run side by side, and nothing of the system's own Slurm, munge or network is touched. It needs root,
or user namespaces. No nodes run here: what Slurm asks the agent to launch stays powered down. There is no slurmdbd
either, so the lines of slurm.conf that lead to it are left out.

    python -m corral.box.slurm DIRECTORY -- scontrol show nodes      # DIRECTORY: what `corral render --out` wrote

The Slurm is this machine's, or that of another system whose root directory is given: its files are only read.
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
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file
from importlib.resources import files as package_files
from pathlib import Path

from corral.agent.install import install
from corral.agent.places import places
from corral.model.cluster import ClusterPlan
from corral.model.jsons import from_json
from corral.model.markets import Role

PROGRAMS = ("slurmctld", "scontrol", "munged", "ip")
ENTRANCES = ("unshare", "nsenter", "pivot_root")  # always this machine's own
START_TIMEOUT_S = 30  # it takes 0.3 s, many times that on a busy machine
STOP_TIMEOUT_S = 10  # slurmctld saves its state; beyond that it is killed
COMMAND_TIMEOUT_S = 120  # scontrol gives up by itself after MessageTimeout; what runs many of them takes longer
_OF_SLURMDBD = frozenset(
    {f"AccountingStorage{what}" for what in ("Enforce", "Host", "TRES", "Type")} | {"JobAcctGatherType"}
)
_OWN_USER = "1000"  # what an ordinary user is called within the namespaces
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# Another system's root in the place of this machine's, for the process that becomes slurm_head.sh. It stays read-only.
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
    """A controller that cannot run here; the text is for a person, its first line is a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """A running slurmctld. `process` holds its namespaces; `user` is empty where they are root's."""

    process: subprocess.Popen[str]
    directory: Path
    user: str

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """What the command did, run on the head. Its exit code is the caller's business."""
        entered = [*self._enter(), *command]
        return subprocess.run(
            entered, capture_output=True, text=True, check=False, timeout=COMMAND_TIMEOUT_S, env=_environment()
        )

    def log(self) -> str:
        """Everything that slurmctld has logged."""
        return (self.directory / "slurmctld.out").read_text(encoding="utf-8")

    def update(self, files: Mapping[str, str]) -> None:
        """Puts new files in the place of the old ones and restarts slurmctld, which running jobs do not notice.

        Before Slurm 23.11 `scontrol reconfigure` with another number of nodes ends slurmctld ("You have to restart").
        Raises SlurmError.
        """
        _install(files, self.directory)
        self.restart()

    def restart(self) -> None:
        """Restarts slurmctld with the files that are there. Raises SlurmError."""
        assert self.process.stdin is not None
        self.process.stdin.write("restart\n")
        self.process.stdin.flush()
        _wait_until_ready(self.process, self.directory)

    def _enter(self) -> tuple[str, ...]:
        pid = self.process.pid
        target = (f"--target={pid}", f"--pid=/proc/{pid}/ns/pid_for_children", "--net", "--uts", "--mount")
        if not self.user:
            return ("nsenter", *target, "--")
        deeper = ("unshare", "--user", f"--map-user={self.user}", f"--map-group={self.user}", "--")
        return ("nsenter", *target, "--user", "--preserve-credentials", "--", *deeper)


@contextlib.contextmanager
def running_slurmctld(files: Mapping[str, str], directory: Path, root: Path = Path("/")) -> Iterator[Controller]:
    """A slurmctld that runs with these files, by their path below the cluster's prefix, until the block is left.

    The directory keeps its state and log. `root`: the root directory of the system whose Slurm it is.
    Whatever ends this process, kill -9 too, ends slurmctld.
    Raises SlurmError where it does not start, with the end of its log.
    """
    _check_programs(root)
    directory = directory.absolute()
    user = "" if os.geteuid() == 0 else _OWN_USER
    plan = from_json(ClusterPlan, files["cluster.json"])
    settings = host_settings(files)
    _furnish(directory, plan, settings, user)
    if not user:
        _give(directory, settings, root)
    _install(files, directory)
    with as_file(package_files("corral.box").joinpath("slurm_head.sh")) as script:
        process = _start(_head(script, directory, root), directory, plan, user)
        try:
            _wait_until_ready(process, directory)
            yield Controller(process=process, directory=directory, user=user)
        finally:
            _stop(process)


def without_accounting(files: Mapping[str, str]) -> Mapping[str, str]:
    """The files for a slurmctld without a slurmdbd beside it, which else ends as it first starts."""
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


def main(arguments: Sequence[str]) -> int:
    """The exit code of a command that was run beside a slurmctld with the files of a directory."""
    if len(arguments) < 3 or arguments[1] != "--":
        print("usage: python -m corral.box.slurm DIRECTORY -- COMMAND...", file=sys.stderr)  # noqa: T201
        return 2
    with tempfile.TemporaryDirectory(prefix="corral-slurm-") as state:
        try:
            with running_slurmctld(read_files(Path(arguments[0])), Path(state)) as controller:
                done = controller.run(*arguments[2:])
        except (SlurmError, OSError) as error:
            print(error, file=sys.stderr)  # noqa: T201
            return 1
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return done.returncode


def _check_programs(root: Path) -> None:
    if sys.platform != "linux":
        raise SlurmError(f"slurmctld needs Linux, this is {sys.platform} - use WSL or a Linux machine for it")
    inside = os.pathsep.join(f"{root}/{place}" for place in _PATH.split(os.pathsep))
    missing = [program for program in PROGRAMS if not shutil.which(program, path=inside)]
    missing += [program for program in ENTRANCES if not shutil.which(program, path=_PATH)]
    if missing:
        where = "" if root == Path("/") else f" in {root}"
        raise SlurmError(f"{', '.join(missing)} not found{where} - install slurmctld, slurm-client, munge, iproute2")


def _furnish(directory: Path, plan: ClusterPlan, settings: Mapping[str, str], user: str) -> None:
    """What the daemons expect to find: their directories, a munge key, and names that resolve without a DNS."""
    for name in ("/etc/slurm", "/opt", "/var/tmp", "/var/lib/munge", "/var/log/munge", *_slurms_own(settings)):
        (directory / name.lstrip("/")).mkdir(parents=True, exist_ok=True)
    directory.chmod(0o755)  # the daemons' users pass through; what is secret is closed by itself
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


def _slurms_own(settings: Mapping[str, str]) -> Sequence[str]:
    """The directories that slurmctld writes to."""
    return settings["StateSaveLocation"], str(Path(settings["SlurmctldLogFile"]).parent)


def _give(directory: Path, settings: Mapping[str, str], root: Path) -> None:
    """What slurmctld writes to belongs to its user."""
    number = _user_number(settings["SlurmUser"], root)
    for name in _slurms_own(settings):
        os.chown(directory / name.lstrip("/"), number, -1)


def _user_number(user: str, root: Path) -> int:
    """The number that the user has in the system with this root directory."""
    try:
        if root == Path("/"):
            return pwd.getpwnam(user).pw_uid
        lines = (line.split(":") for line in (root / "etc/passwd").read_text(encoding="utf-8").splitlines())
        return {fields[0]: int(fields[2]) for fields in lines}[user]
    except KeyError as error:
        raise SlurmError(f"there is no user {user!r} here - Debian's slurmctld package makes one") from error


def _install(files: Mapping[str, str], directory: Path) -> None:
    """As the agent does it on a head."""
    texts = without_accounting(files)
    install(places({name: text.encode() for name, text in texts.items()}, Role.HEAD, None), directory)


def _head(script: Path, directory: Path, root: Path) -> Sequence[str]:
    """The command that becomes the head within the namespaces, without what the plan says of it."""
    if root == Path("/"):
        return "/bin/sh", str(script), str(directory)
    return "/bin/sh", "-c", _MOVE, "move", str(root), str(directory), str(script)


def _start(command: Sequence[str], directory: Path, plan: ClusterPlan, user: str) -> subprocess.Popen[str]:
    """The process that holds the namespaces. Its standard input is the line that its life hangs on."""
    spaces = ("--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    own = ("--user", "--map-root-user") if user else ()
    head = (plan.head.host_name, str(plan.head.address), user)
    with (directory / "head.out").open("w", encoding="utf-8") as errors:
        return subprocess.Popen(
            ["unshare", *own, *spaces, *command, *head],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=_environment(),
            start_new_session=True,  # Ctrl-C is for the caller, which then stops it in order
        )


def _wait_until_ready(process: subprocess.Popen[str], directory: Path) -> None:
    assert process.stdout is not None
    answers, _, _ = select.select([process.stdout], [], [], START_TIMEOUT_S)
    if answers and process.stdout.readline() == "ready\n":
        return
    log = _end_of_log(directory)
    if log.startswith("unshare:"):
        raise SlurmError(
            f"this machine gives no namespaces for a slurmctld - root or user namespaces are needed\n{log}"
        )
    problem = "ended at once" if answers else f"did not answer within {START_TIMEOUT_S} s"
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
