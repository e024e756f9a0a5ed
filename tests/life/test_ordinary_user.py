"""The box of an ordinary user: with a range of subordinate ids, and without one. Root plays that user.

Each claim is about one short life of `dev`: up, a job on two nodes, down.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from reach import NOBODY, as_ordinary_user

from corral.box.vpc.probe import Users, probe
from corral.engine.binary import find_pulumi
from environments import PROJECT

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm]
SOON_S = 240.0  # many times what it takes on a machine that does nothing else
# Debian's, for ordinary users: without the programs of root.
PATH = "/usr/local/bin:/usr/bin:/bin"
GROUNDS = (Users.SUBUIDS, Users.ONE) if os.geteuid() == 0 else (probe().users,)
JOB = "until sinfo >/dev/null 2>&1; do sleep 0.2; done; srun --nodes=2 --chdir=/ sh -c 'echo $SLURMD_NODENAME $(id -u)'"

# Where one user is everybody there is no sshd, and nobody else to become.
SSH = "su - admin -c 'ssh train-1 id -un' 2>/dev/null || echo nobody"


@dataclass(kw_only=True)
class User:
    """A user with a project and a box in a directory of his own. `prefix`: what makes a command his."""

    ground: Users | None
    directory: Path
    prefix: Sequence[str]
    seen: dict[str, Any] = field(default_factory=dict)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """His command, however it ends."""
        pulumi = find_pulumi()
        own = {name: value for name, value in os.environ.items() if not name.startswith(("CORRAL_", "PULUMI_", "XDG_"))}
        own |= {"HOME": str(self.directory), "CORRAL_BOX_DIR": str(self.directory / "box"), "NO_COLOR": "1"}
        own |= {"CORRAL_PULUMI": str(pulumi.path), "PATH": os.pathsep.join((PATH, *map(str, pulumi.search)))}
        words = [*self.prefix, *command]
        nothing = subprocess.DEVNULL
        return subprocess.run(words, cwd=self.directory, env=own, stdin=nothing, capture_output=True, text=True)

    def python(self, *arguments: str) -> str:
        """What a Python of his printed, which must succeed."""
        done = self.run(sys.executable, *arguments)
        assert done.returncode == 0, f"{arguments} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def corral(self, *arguments: str) -> str:
        """What a command of corral printed, which must succeed."""
        return self.python("-m", "corral.cli", *arguments)

    def on_head(self, command: str) -> str:
        """What a shell command printed on the head, as soon as that is a machine."""
        words = ("-m", "corral.cli", "connect", "dev", "--box", "--", "sh", "-c", command)
        deadline = time.monotonic() + SOON_S
        while (done := self.run(sys.executable, *words)).returncode and time.monotonic() < deadline:
            time.sleep(0.5)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def disks(self) -> list[str]:
        """The disks and volumes of machines that are there, as soon as none is."""
        deadline = time.monotonic() + SOON_S
        places = [self.directory / "box/machines" / kind for kind in ("disks", "volumes")]
        while (left := sorted(str(one) for place in places for one in place.iterdir())) and time.monotonic() < deadline:
            time.sleep(0.2)
        return left

    def processes(self) -> list[str]:
        """The command lines of processes that name his directory."""
        found = subprocess.run(["pgrep", "-af", str(self.directory)], capture_output=True, text=True)
        return found.stdout.splitlines()


@pytest.fixture(scope="module", params=GROUNDS, ids=str)
def user(request: pytest.FixtureRequest) -> Iterator[User]:
    """The user, who has run a job on two nodes."""
    with tempfile.TemporaryDirectory(prefix="corral-user-", ignore_cleanup_errors=True) as name:
        prefix = as_ordinary_user(with_range=request.param is Users.SUBUIDS)
        user = User(ground=request.param, directory=Path(name), prefix=prefix)
        shutil.copytree(PROJECT / "stacks", user.directory / "stacks", ignore=shutil.ignore_patterns("__pycache__"))
        if prefix:
            subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", name], check=True)
        try:
            user.corral("up", "dev", "--box", "--yes")
            user.seen["job"] = user.on_head(JOB)
            user.seen["ssh"] = user.on_head(SSH)
            yield user
        finally:
            user.run(sys.executable, "-m", "corral.cli", "box", "stop")


@pytest.fixture(scope="module")
def gone(user: User) -> User:
    """The same user, whose environment is down and whose box has stopped."""
    user.corral("down", "dev", "--box", "--with-base", "--yes", "--now", "--grace", "1")
    user.seen["disks"] = user.disks()
    user.corral("box", "stop")
    user.seen["processes"] = user.processes()
    return user


def test_machines_stand_on_what_the_user_has(user: User) -> None:
    told = user.python("-c", "from corral.box.vpc.probe import probe; print(probe().users, probe().problem)")
    assert told.split(maxsplit=1) == [str(user.ground)]


def test_a_job_runs_on_two_nodes_as_who_submitted_it(user: User) -> None:
    number = {Users.ROOT: "0", Users.SUBUIDS: "0", Users.ONE: "1000"}[user.ground or Users.ROOT]
    assert sorted(user.seen["job"].splitlines()) == [f"train-1 {number}", f"train-2 {number}"]


def test_ssh_goes_from_machine_to_machine_where_they_have_users(user: User) -> None:
    name = {Users.ROOT: "admin", Users.SUBUIDS: "admin", Users.ONE: "nobody"}[user.ground or Users.ROOT]
    assert user.seen["ssh"] == f"{name}\n"


def test_down_leaves_no_disk_of_a_machine(gone: User) -> None:
    assert gone.seen["disks"] == []


def test_a_box_that_has_stopped_leaves_no_process(gone: User) -> None:
    assert gone.seen["processes"] == []
