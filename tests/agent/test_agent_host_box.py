"""A machine of the box, as far as it can be one here: what starts, what is attached, and what is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent.waiting import until
from corral.agent.host_box import BoxHost, searching
from corral.agent.hosts import Daemon, HostError

MODULES = Path(__file__).parents[2] / "modules"
MOUNTS = """
import os, sys
from pathlib import Path
from corral.agent.host_box import BoxHost

top = Path(sys.argv[1])
host = BoxHost(top / "box")
for _ in range(2):
    host.mount_volume("vol-1", top / "state")
    host.mount_home("fs-1", top / "home")
    host.mount_lustre("fs-2.fsx.us-east-1.amazonaws.com", "abc", top / "scratch")
print(*(os.listdir(top / name) for name in ("state", "home", "scratch")))
print(Path("/proc/self/mounts").read_text().count(f" {top}/"))
"""


@pytest.fixture
def host(tmp_path: Path) -> BoxHost:
    return BoxHost(tmp_path / "box", tmp_path / "logs", attached_in_s=0, per_boot=tmp_path / "per-boot")


def daemon(directory: Path, script: str) -> Daemon:
    """A daemon that runs this script in the directory, by a name that no other program has."""
    program = directory / "corral-test"
    program.write_text(f"#!/bin/sh\ncd {directory}\n{script}\n")
    program.chmod(0o755)
    return Daemon(unit="corral-test", command=(str(program),))


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
    assert searching(before, "dev.internal") == after


def test_a_volume_that_never_comes_is_told_by_its_id(host: BoxHost) -> None:
    with pytest.raises(HostError, match=r"^volume vol-1 was not attached within 0 s$"):
        host.mount_volume("vol-1", Path("/var/lib/corral"))


def test_a_machine_that_boots_again_starts_its_daemons_again(host: BoxHost, tmp_path: Path) -> None:
    host.start(daemon(tmp_path, "exit 0"))
    assert (tmp_path / "per-boot/corral").read_text().splitlines()[-1] == "exec /opt/corral/boot.sh"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root: run the tests as root")
def test_what_is_attached_is_mounted_once_in_its_place(tmp_path: Path) -> None:
    for place in ("volumes/vol-1", "file-systems/fs-1", "file-systems/fs-2"):
        (tmp_path / "box" / place / place.rpartition("/")[2]).mkdir(parents=True)
    command = ["unshare", "--mount", sys.executable, "-c", MOUNTS, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(MODULES)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['vol-1'] ['fs-1'] ['fs-2']", "3"]


def test_a_daemon_that_forks_has_started_when_its_command_is_done(host: BoxHost, tmp_path: Path) -> None:
    host.start(daemon(tmp_path, 'echo "$@" >started'), ("-N", "train-1"))
    assert (tmp_path / "started").read_text() == "-N train-1\n"


# The agent ends before its child does, so that nobody waits for it; here Python notices.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_daemon_that_does_not_fork_stays_and_writes_to_its_log(host: BoxHost, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    host.start(replace(daemon(tmp_path, "echo ready; read line <pipe; echo $line"), forks=False))
    (tmp_path / "pipe").write_text("over\n")  # opens only when somebody reads
    until(lambda: (tmp_path / "logs/corral-test.log").read_text() == "ready\nover\n")


def test_a_daemon_that_runs_is_left_alone(host: BoxHost, tmp_path: Path) -> None:
    name = Path("/proc/self/exe").readlink().name
    host.start(Daemon(unit="x", command=(f"/nowhere/{name}",), owned=(str(tmp_path / "owned"),)))
    assert not (tmp_path / "owned").exists()


def test_a_daemon_that_cannot_start_is_one_sentence(host: BoxHost, tmp_path: Path) -> None:
    with pytest.raises(HostError, match=rf"^{tmp_path}/corral-test -D failed with 3: no$"):
        host.start(daemon(tmp_path, "echo no >&2; exit 3"), ("-D",))


def test_a_daemon_that_is_not_installed_is_one_sentence(host: BoxHost) -> None:
    with pytest.raises(HostError, match=r"^/nowhere/slurmd-1 -N train-1: .*No such file or directory"):
        host.start(Daemon(unit="slurmd", command=("/nowhere/slurmd-1",)), ("-N", "train-1"))


def test_the_directories_of_a_daemon_are_made(host: BoxHost, tmp_path: Path) -> None:
    host.start(replace(daemon(tmp_path, ":"), owned=(str(tmp_path / "a/b"), str(tmp_path / "c"))))
    assert [(tmp_path / place).is_dir() for place in ("a/b", "c")] == [True, True]


@pytest.mark.slurm
def test_a_daemon_of_another_user_is_started_as_that_user(host: BoxHost) -> None:
    command = "setpriv --reuid=munge --init-groups --regid munge -- /nowhere/corral-munged"
    with pytest.raises(HostError, match=f"^{command} failed with "):
        host.start(Daemon(unit="x", command=("/nowhere/corral-munged",), user="munge"))


def test_a_daemon_that_is_called_by_a_link_is_the_one_that_runs(host: BoxHost, tmp_path: Path) -> None:
    """Debian's slurmctld is a link to one of several: a restart that does not see it starts a second one."""
    real, link = tmp_path / "sleeper-real", tmp_path / "sleeper"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", real)
    link.symlink_to(real)
    with subprocess.Popen([link, "60"]) as first:
        until(lambda: Path(f"/proc/{first.pid}/exe").readlink() == real)
        host.start(Daemon(unit="sleeper", command=(str(link), "61"), alone=True, forks=False))
        sleeping = [one for one in Path("/proc").glob("[0-9]*/exe") if is_link_to(one, real)]
        first.kill()
    assert [one.parent.name for one in sleeping] == [str(first.pid)]


def is_link_to(exe: Path, program: Path) -> bool:
    try:
        return exe.readlink() == program
    except OSError:  # it has ended
        return False
