"""The host of a box machine, as far as tests can run it: daemons, mounts and errors."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket as sockets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.waiting import until
from corral.agent.host.base import Daemon, HostError
from corral.agent.host.box import BoxHost, with_search_domain
from corral.agent.host.daemon_supervisor import processes

# The agent ends before its child does, so that nobody waits for it; here Python notices.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
MODULES = Path(__file__).parents[3] / "modules"
MOUNTS = """
import os, sys
from pathlib import Path
from corral.agent.host.box import BoxHost

top = Path(sys.argv[1])
host = BoxHost(top / "box")
for _ in range(2):
    host.mount_volume("vol-1", top / "state")
    host.mount_home("fs-1", top / "home")
    host.mount_lustre("fs-2.fsx.us-east-1.amazonaws.com", "abc", top / "scratch")
print(*(os.listdir(top / name) for name in ("state", "home", "scratch")))
print(Path("/proc/self/mounts").read_text().count(f" {top}/"))
"""

Make = Callable[[str], Daemon]


@pytest.fixture
def host(tmp_path: Path) -> BoxHost:
    paths = {"per_boot": tmp_path / "per-boot", "sshd_pid": tmp_path / "sshd.pid"}
    return BoxHost(tmp_path / "box", tmp_path / "logs", attached_in_s=0, listens_in_s=0, **paths)


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses are none."""
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    (bin_dir / "sleep").write_text("#!/bin/sh\nexec /bin/sleep 0.05\n")
    (bin_dir / "sleep").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_dir}:{os.environ['PATH']}")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Make]:
    """Makes a daemon that counts its starts and runs this script in the directory. All end with the test."""
    program = tmp_path / "corral-test"
    daemon = Daemon(unit="corral-test", command=(str(program),))

    def make(script: str) -> Daemon:
        program.write_text(f"#!/bin/sh\ncd {tmp_path}\necho x >>starts\n{script}\n")
        program.chmod(0o755)
        return daemon

    yield make
    while running := groups(daemon):
        end(*running)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nameserver 10.64.0.2\n", "nameserver 10.64.0.2\nsearch dev.internal\n"),
        (
            "nameserver 10.64.0.2\nsearch ec2.internal\n",
            "nameserver 10.64.0.2\nsearch dev.internal ec2.internal\n",
        ),
        (
            "nameserver 10.64.0.2\nsearch dev.internal ec2.internal\n",
            "nameserver 10.64.0.2\nsearch dev.internal ec2.internal\n",
        ),
    ],
    ids=["none before", "before EC2's own", "again"],
)
def test_names_without_a_dot_are_looked_up_in_the_clusters_zone_first(before: str, after: str) -> None:
    assert with_search_domain(before, "dev.internal") == after


def test_sshd_reloads_its_settings(host: BoxHost, tmp_path: Path) -> None:
    def listen() -> None:  # nohup makes a whole test run ignore it
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    with subprocess.Popen(["sleep", "60"], preexec_fn=listen) as sshd:
        (tmp_path / "sshd.pid").write_text(f"{sshd.pid}\n")
        host.reload_sshd()
    assert sshd.returncode == -signal.SIGHUP


@pytest.mark.parametrize("content", [None, "", "4194305\n"], ids=["no file", "an empty file", "no process any more"])
def test_without_sshd_nothing_is_reloaded(host: BoxHost, tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "sshd.pid").write_text(content)
    host.reload_sshd()


def test_a_volume_that_is_never_attached_is_named_by_its_id(host: BoxHost) -> None:
    with pytest.raises(HostError, match=r"^volume vol-1 was not attached within 0 s$"):
        host.mount_volume("vol-1", Path("/var/lib/corral"))


def test_a_machine_that_boots_again_starts_its_daemons_again(host: BoxHost, tmp_path: Path, made: Make) -> None:
    host.start(made("exit 0"))
    again = "[ -e /var/lib/cloud/instance/corral-booted ] && exec /opt/corral/boot.sh"
    assert (tmp_path / "per-boot/corral").read_text().splitlines()[-1] == again


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root: run the tests as root")
def test_an_attached_volume_is_mounted_once(tmp_path: Path) -> None:
    for path in ("volumes/vol-1", "file-systems/fs-1", "file-systems/fs-2"):
        (tmp_path / "box" / path / path.rpartition("/")[2]).mkdir(parents=True)
    command = ["unshare", "--mount", sys.executable, "-c", MOUNTS, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(MODULES)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['vol-1'] ['fs-1'] ['fs-2']", "3"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, which becomes another user")
def test_what_prepares_a_start_runs_as_the_daemons_user(host: BoxHost, made: Make) -> None:
    """As on EC2. The daemon's directories belong to that user, who may have put links there."""
    with tempfile.TemporaryDirectory() as work_dir:
        Path(work_dir).chmod(0o777)
        prepare = Path(work_dir) / "prepare"
        prepare.write_text(f"#!/bin/sh\nid -un >{work_dir}/user\n")
        prepare.chmod(0o755)
        host.start(replace(made("exit 0"), user="daemon", prepared_by=str(prepare)))
        assert (Path(work_dir) / "user").read_text() == "daemon\n"


def test_a_daemon_gets_its_foreground_option_first(host: BoxHost, tmp_path: Path, made: Make) -> None:
    host.start(replace(made('echo "$@" >out'), foreground=("-D",)), ("-N", "train-1"))
    until(lambda: text(tmp_path / "out") == "-D -N train-1\n")


def test_a_daemon_has_variables_of_its_own(host: BoxHost, tmp_path: Path, made: Make) -> None:
    host.start(replace(made('echo "$PLACE" >out'), environment=("PLACE=/run/here",)))
    until(lambda: text(tmp_path / "out") == "/run/here\n")


def test_a_daemon_starts_in_the_root_directory(host: BoxHost, tmp_path: Path, made: Make) -> None:
    host.start(made('echo "$OLDPWD" >out'))
    until(lambda: text(tmp_path / "out") == "/\n")


def test_a_daemon_stays_and_writes_to_its_log(host: BoxHost, tmp_path: Path, made: Make) -> None:
    os.mkfifo(tmp_path / "pipe")
    host.start(made("echo ready; read line <pipe; echo $line"))
    (tmp_path / "pipe").write_text("over\n")  # opens only when somebody reads
    until(lambda: text(tmp_path / "logs/corral-test.log") == "ready\nover\n")


def test_a_daemon_whose_socket_accepts_connections_has_started(host: BoxHost, tmp_path: Path, made: Make) -> None:
    with sockets.socket(sockets.AF_UNIX) as one:
        one.bind(str(tmp_path / "socket"))
        one.listen()
        host.start(replace(made("exec sleep 60"), socket=str(tmp_path / "socket")))


def test_a_daemon_without_its_socket_is_one_sentence(host: BoxHost, tmp_path: Path, made: Make) -> None:
    with pytest.raises(
        HostError, match=rf"^corral-test accepts no connections after 0 s - see {tmp_path}/logs/corral-"
    ):
        host.start(replace(made("exec sleep 60"), socket=str(tmp_path / "socket")))


@pytest.mark.parametrize(
    "script",
    ["exit 1", "kill -KILL $$", "kill -SEGV $$", "kill -ABRT $$"],
)
def test_a_failed_daemon_is_restarted(host: BoxHost, tmp_path: Path, made: Make, quick: None, script: str) -> None:
    host.start(made(script))
    until(lambda: starts(tmp_path) > 2)


@pytest.mark.parametrize("script", ["exit 0", "kill -TERM $$", "kill -HUP $$", "kill -INT $$", "kill -PIPE $$"])
def test_a_daemon_that_was_stopped_stays_so(
    host: BoxHost, tmp_path: Path, made: Make, quick: None, script: str
) -> None:
    stopped = made(script)
    host.start(stopped)
    until(lambda: starts(tmp_path) and not processes(stopped))
    assert starts(tmp_path) == 1


def test_a_restart_is_in_the_daemons_log(host: BoxHost, tmp_path: Path, made: Make, quick: None) -> None:
    host.start(made("exit 3"))
    until(lambda: ": exited with 3, restarting in 5 s\n" in text(tmp_path / "logs/corral-test.log"))


def test_a_daemon_between_two_starts_is_left_alone(host: BoxHost, tmp_path: Path, made: Make) -> None:
    failing = made("exit 1")
    host.start(failing)
    until(lambda: "exited" in text(tmp_path / "logs/corral-test.log"))
    host.start(failing)
    assert len(groups(failing)) == 1


@pytest.mark.parametrize("packaged", [True, False], ids=["packaged", "the agent's own"])
def test_a_restart_also_ends_the_supervisor(host: BoxHost, tmp_path: Path, made: Make, packaged: bool) -> None:
    kept = replace(made("exec sleep 60"), packaged=packaged)
    host.start(kept)
    until(lambda: starts(tmp_path) == 1)
    before = groups(kept)
    host.restart(kept)
    until(lambda: starts(tmp_path) == 2)
    after = groups(kept)
    end(*before)
    assert (len(before), len(after), before & after) == (1, 1, set())


def test_the_agents_own_daemon_is_always_restarted(host: BoxHost, tmp_path: Path, made: Make, quick: None) -> None:
    host.start(replace(made("exit 0"), packaged=False))
    until(lambda: starts(tmp_path) > 2)


@pytest.mark.parametrize("packaged", [True, False], ids=["packaged", "the agent's own"])
def test_a_daemon_that_runs_is_started_once(host: BoxHost, tmp_path: Path, made: Make, packaged: bool) -> None:
    kept = replace(made("exec sleep 60"), packaged=packaged)
    host.start(kept)
    until(lambda: starts(tmp_path) == 1)
    host.start(kept)
    assert len(groups(kept)) == 1


def test_a_restart_removes_its_mark(host: BoxHost, tmp_path: Path, made: Make) -> None:
    mark = tmp_path / "renewed"
    mark.touch()
    host.restart(replace(made("exec sleep 60"), packaged=False), mark)
    until(lambda: starts(tmp_path) == 1)  # before, its words may not be in /proc, and its end would not find it
    assert not mark.exists()


def text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def starts(directory: Path) -> int:
    return len(text(directory / "starts").splitlines())


def groups(kept: Daemon) -> set[int]:
    found = set()
    for process in processes(kept):
        with contextlib.suppress(ProcessLookupError):  # it has ended since
            found.add(os.getpgid(process))
    return found


def end(*running: int) -> None:
    """Ends them for good, as a machine's end does: each is with its children in a group of its own."""
    for group in running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def test_a_daemon_that_runs_is_left_alone(host: BoxHost, tmp_path: Path) -> None:
    name = Path("/proc/self/exe").readlink().name
    host.start(Daemon(unit="x", command=(f"/nowhere/{name}",), owned_dirs=(str(tmp_path / "owned"),)))
    assert not (tmp_path / "owned").exists()


def test_a_daemon_that_is_not_installed_is_one_sentence(host: BoxHost) -> None:
    with pytest.raises(HostError, match=r"^cannot start slurmd: /nowhere/slurmd-1 does not exist$"):
        host.start(Daemon(unit="slurmd", command=("/nowhere/slurmd-1",)), ("-N", "train-1"))


def test_everyone_may_write_to_the_instance_store(host: BoxHost, tmp_path: Path) -> None:
    host.mount_nvme(tmp_path / "nvme")
    assert (tmp_path / "nvme").stat().st_mode & 0o7777 == 0o1777


def test_the_directories_of_a_daemon_are_made(host: BoxHost, tmp_path: Path, made: Make) -> None:
    host.start(replace(made(":"), owned_dirs=(str(tmp_path / "a/b"), str(tmp_path / "c"))))
    assert [(tmp_path / path).is_dir() for path in ("a/b", "c")] == [True, True]


def test_a_private_directory_is_closed_to_others(host: BoxHost, tmp_path: Path, made: Make) -> None:
    (tmp_path / "a").mkdir(mode=0o755)
    host.start(replace(made(":"), owned_dirs=(str(tmp_path / "b"),), private_dirs=(str(tmp_path / "a"),)))
    assert [(tmp_path / path).stat().st_mode & 0o777 for path in ("a", "b")] == [0o700, 0o755]


@pytest.mark.slurm
def test_a_daemon_of_another_user_is_started_as_that_user(host: BoxHost, tmp_path: Path) -> None:
    host.start(Daemon(unit="x", command=("/usr/bin/id",), user="munge", foreground=("-nu",)))
    until(lambda: text(tmp_path / "logs/x.log") == "munge\n")


def test_a_daemon_that_is_called_by_a_link_is_the_one_that_runs(host: BoxHost, tmp_path: Path) -> None:
    """Debian's slurmctld is a link to one of several: a restart that does not see it starts a second one."""
    real, link = tmp_path / "sleeper-real", tmp_path / "sleeper"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", real)
    link.symlink_to(real)
    with subprocess.Popen([link, "60"]) as first:
        until(lambda: Path(f"/proc/{first.pid}/exe").readlink() == real)
        host.start(Daemon(unit="sleeper", command=(str(link), "61")))
        sleeping = [one for one in Path("/proc").glob("[0-9]*/exe") if is_link_to(one, real)]
        first.kill()
    assert [one.parent.name for one in sleeping] == [str(first.pid)]


def is_link_to(exe: Path, program: Path) -> bool:
    try:
        return exe.readlink() == program
    except OSError:  # it has ended
        return False
