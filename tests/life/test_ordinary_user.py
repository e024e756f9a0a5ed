"""The box of an ordinary user: with a range of subordinate ids, and without one. Root plays that user.

`dev` from its up over a job on two nodes to its down.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from ordinary_user import NOBODY, as_ordinary_user

from corral.box.vpc.capabilities import Users, probe_host
from corral.engine.pulumi.binary import find_pulumi
from environments import PROJECT
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm, pytest.mark.long]
SOON_S = 240.0  # many times what it takes on a machine that does nothing else
# Debian's, for ordinary users: without the programs of root.
PATH = "/usr/local/bin:/usr/bin:/bin"
GROUNDS = (Users.SUBUIDS, Users.ONE) if os.geteuid() == 0 else (probe_host().users,)
PROBE = "from corral.box.vpc.capabilities import probe_host; print(probe_host().users, probe_host().problem)"
JOB = "until sinfo >/dev/null 2>&1; do sleep 0.2; done; srun --nodes=2 --chdir=/ sh -c 'echo $SLURMD_NODENAME $(id -u)'"

# Where one user is everybody there is no sshd, and nobody else to become.
SSH = "su - admin -c 'ssh train-1 id -un' 2>/dev/null || echo nobody"


@dataclass(kw_only=True)
class User:
    """A user with a project and a box in a directory of their own. `prefix`: what makes a command theirs."""

    directory: Path
    prefix: Sequence[str]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A command of theirs, however it ends."""
        pulumi = find_pulumi()
        own = {name: value for name, value in os.environ.items() if not name.startswith(("CORRAL_", "PULUMI_", "XDG_"))}
        own |= {"HOME": str(self.directory), "CORRAL_BOX_DIR": str(self.directory / "box"), "NO_COLOR": "1"}
        own |= {"CORRAL_PULUMI": str(pulumi.path), "PATH": os.pathsep.join((PATH, *map(str, pulumi.search)))}
        words = [*self.prefix, *command]
        nothing = subprocess.DEVNULL
        return subprocess.run(words, cwd=self.directory, env=own, stdin=nothing, capture_output=True, text=True)

    def python(self, *arguments: str) -> str:
        """What a Python of theirs printed, which must succeed."""
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
        directories = [self.directory / "box/machines" / kind for kind in ("disks", "volumes")]
        while (
            left := sorted(str(one) for directory in directories for one in directory.iterdir())
        ) and time.monotonic() < deadline:
            time.sleep(0.2)
        return left

    def processes(self) -> list[str]:
        """The command lines of processes that name his directory."""
        found = subprocess.run(["pgrep", "-af", str(self.directory)], capture_output=True, text=True)
        return found.stdout.splitlines()


@contextmanager
def user_of(namespace: Users | None) -> Iterator[User]:
    """The user, in a directory of their own with a copy of the stacks; their box is stopped, whatever happens."""
    with tempfile.TemporaryDirectory(prefix="corral-user-", ignore_cleanup_errors=True) as name:
        prefix = as_ordinary_user(with_range=namespace is Users.SUBUIDS)
        user = User(directory=Path(name), prefix=prefix)
        shutil.copytree(PROJECT / "stacks", user.directory / "stacks", ignore=shutil.ignore_patterns("__pycache__"))
        if prefix:
            subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", name], check=True)
        try:
            yield user
        finally:
            user.run(sys.executable, "-m", "corral.cli", "box", "stop")


@pytest.mark.parametrize("namespace", GROUNDS, ids=str)
def test_an_ordinary_user_has_machines_from_up_to_down(namespace: Users | None) -> None:
    with user_of(namespace) as user:
        with step("machines run on what the user has"):
            assert user.python("-c", PROBE).split(maxsplit=1) == [str(namespace)]
        user.corral("up", "dev", "--box", "--yes")
        with step("a job runs on two nodes as who submitted it"):
            number = {Users.ROOT: "0", Users.SUBUIDS: "0", Users.ONE: "1000"}[namespace or Users.ROOT]
            assert sorted(user.on_head(JOB).splitlines()) == [f"train-1 {number}", f"train-2 {number}"]
        with step("ssh connects machines where they have users"):
            name = {Users.ROOT: "admin", Users.SUBUIDS: "admin", Users.ONE: "nobody"}[namespace or Users.ROOT]
            assert user.on_head(SSH) == f"{name}\n"
        user.corral("down", "dev", "--box", "--with-base", "--yes", "--now", "--grace", "1")
        with step("down leaves no disk of a machine"):
            assert user.disks() == []
        user.corral("box", "stop")
        with step("a box that has stopped leaves no process"):
            assert user.processes() == []
