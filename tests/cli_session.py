"""A project with small programs, a box for it, and `corral` as a subprocess."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boxes import inventory
from corral.box import client
from forked_corral import run_corral

PROJECT = Path(__file__).parents[1]
PROGRAMS = Path(__file__).parent / "engine/programs"


@dataclass(frozen=True, slots=True, kw_only=True)
class CliSession:
    """A project directory, the box of its stacks, and the command line."""

    project: Path
    box: Path

    def command(self, *arguments: str) -> list[str]:
        """`corral ...` for this project and box."""
        return [sys.executable, "-m", "corral.cli", *arguments, *self.options]

    @property
    def options(self) -> tuple[str, ...]:
        """The project and the box."""
        return "--project", str(self.project), "--box-dir", str(self.box)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        return run_corral(*arguments, *self.options, env=self.environ)

    def answer(self, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command to its end while somebody types this text on its terminal."""
        keyboard, terminal = pty.openpty()
        os.write(keyboard, text.encode())
        try:
            return subprocess.run(
                self.command(*arguments), stdin=terminal, capture_output=True, text=True, check=False, env=self.environ
            )
        finally:
            os.close(keyboard)
            os.close(terminal)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the command in a session of its own, with stdout and stderr in one pipe."""
        return subprocess.Popen(
            self.command(*arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env=self.environ,
        )

    def left(self) -> dict[str, list[str]]:
        """The resources in the box, without the user's bucket and the boundary of roles that the first up creates."""
        boundary = ["arn:aws:iam::123456789012:policy/corral/guards-boundary-us-east-1"]
        stand_ins = (("s3/bucket", ["corral-example-corpus"]), ("iam/policy", boundary))
        return {kind: ids for kind, ids in inventory(self.box).items() if (kind, ids) not in stand_ins}

    def pulumi(self, stack: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run plain `pulumi` to its end, as a user does with the variables of the box."""
        process = self.start_pulumi(stack, *arguments)
        out, err = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def start_pulumi(self, stack: str, *arguments: str) -> subprocess.Popen[str]:
        """Start the same."""
        from corral.engine.pulumi.binary import find_pulumi

        binary = find_pulumi()
        path = os.pathsep.join([*map(str, binary.search), self.environ["PATH"]])
        environ = {**self.environ, **client.environment(self.box)}
        environ["PATH"] = os.pathsep.join([environ["PATH"], path])
        command = [str(binary.path), "-C", str(self.box / "stacks" / stack), *arguments, "--stack", "dev"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ)

    def hashes(self) -> dict[str, str]:
        """The hash of each file of the project."""
        files = sorted(file for file in self.project.rglob("*") if file.is_file() and file.suffix != ".pyc")
        return {str(file.relative_to(self.project)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}

    def replace(self, file: str, old: str, new: str) -> None:
        """Replace a text in one of the project's files."""
        path = self.project / file
        path.write_text(path.read_text().replace(old, new))

    @property
    def environ(self) -> dict[str, str]:
        """The environment variables of every process; locks and crash reports are next to the box."""
        return {**os.environ, "CORRAL_STATE_DIR": str(self.box.parent / "state"), "NO_COLOR": "1"}


def copy_project(directory: Path, *, small: bool) -> Path:
    """Copy the shipped project. `small`: with programs of a few resources."""
    shutil.copytree(PROJECT / "stacks", directory / "stacks", ignore=shutil.ignore_patterns("__pycache__"))
    if small:
        shutil.copytree(PROGRAMS, directory / "stacks", dirs_exist_ok=True)
    return directory


def start_until(session: CliSession, verb: str, word: str, after: int, *options: str) -> subprocess.Popen[str]:
    """Start the command, and wait until it has printed that many lines that begin with the word."""
    process = session.start(verb, "dev", "--yes", *options)
    assert process.stdout is not None
    seen = 0
    while seen < after:
        line = process.stdout.readline()
        assert line, "the command ended too early"
        seen += line.startswith(f"  {word}")
    return process


def redeploy_counts(session: CliSession) -> dict[str, tuple[int, int, int]]:
    """Run up; count created, changed or deleted, and unchanged resources by stack."""
    done = session.run("up", "dev", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    stacks = {name: found[name] for name in ("base", "cluster")}
    return {
        name: (one["created"], one["updated"] + one["replaced"] + one["deleted"], one["same"])
        for name, one in stacks.items()
    }


def process_tree(pid: int) -> list[int]:
    """The process and all its descendants, now."""
    parents = {int(one): _parent(int(one)) for one in os.listdir("/proc") if one.isdigit()}  # noqa: PTH208
    found = [pid]
    for member in found:
        found += [child for child, parent in parents.items() if parent == member]
    return found


def kill(pids: Sequence[int]) -> None:
    """Send SIGKILL to those that still run."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def is_engine(pid: int) -> bool:
    """True for a Pulumi CLI."""
    try:
        return Path(f"/proc/{pid}/exe").readlink().name == "pulumi"
    except OSError:
        return False


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def state(*resources: dict[str, Any], pending: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """An exported state with these resources and pending operations."""
    return {"version": 3, "deployment": {"resources": list(resources), "pending_operations": list(pending)}}
