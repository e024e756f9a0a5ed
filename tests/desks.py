"""A project with small programs and a box for it, and `corral` as a process of its own."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corral.box import control

PROJECT = Path(__file__).parents[1]
PROGRAMS = Path(__file__).parent / "engine/programs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """A project directory, the box that its stacks live in, and the command line."""

    project: Path
    box: Path

    def command(self, *arguments: str) -> list[str]:
        """`corral ...` for this project and box."""
        return [
            *(sys.executable, "-m", "corral.cli", *arguments),
            *("--project", str(self.project), "--box-dir", str(self.box)),
        ]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command, run to its end."""
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, check=False, env=self.environ)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """The command, running in a session of its own, both outputs in one pipe."""
        return subprocess.Popen(
            self.command(*arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env=self.environ,
        )

    def left(self) -> dict[str, list[str]]:
        """What the box holds beside the bucket that stands for the user's data, which the first up makes."""
        found = control.inventory(self.box)
        return {kind: ids for kind, ids in found.items() if (kind, ids) != ("s3/bucket", ["corral-example-corpus"])}

    def pulumi(self, stack: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Plain `pulumi`, as a person types it with the variables of the box, run to its end."""
        process = self.start_pulumi(stack, *arguments)
        out, err = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def start_pulumi(self, stack: str, *arguments: str) -> subprocess.Popen[str]:
        """The same, running."""
        from corral.engine.binary import find_pulumi

        binary = find_pulumi()
        path = os.pathsep.join([*map(str, binary.search), self.environ["PATH"]])
        environ = {**self.environ, **control.environment(self.box)}
        environ["PATH"] = os.pathsep.join([environ["PATH"], path])
        command = [str(binary.path), "-C", str(self.box / "stacks" / stack), *arguments, "--stack", "dev"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ)

    def hashes(self) -> dict[str, str]:
        """Every file of the project with the hash of its content."""
        files = sorted(file for file in self.project.rglob("*") if file.is_file() and file.suffix != ".pyc")
        return {str(file.relative_to(self.project)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}

    def replace(self, file: str, old: str, new: str) -> None:
        """Changes a text in one of the project's files."""
        path = self.project / file
        path.write_text(path.read_text().replace(old, new))

    @property
    def environ(self) -> dict[str, str]:
        """The environment of every process here; locks and crash reports stay beside the box."""
        return {**os.environ, "CORRAL_STATE_DIR": str(self.box.parent / "state"), "NO_COLOR": "1"}


def furnished(directory: Path, *, small: bool) -> Path:
    """A copy of the shipped project; `small`: its programs are small ones, of a few resources."""
    shutil.copytree(PROJECT / "stacks", directory / "stacks", ignore=shutil.ignore_patterns("__pycache__"))
    if small:
        shutil.copytree(PROGRAMS, directory / "stacks", dirs_exist_ok=True)
    return directory


def begun(desk: Desk, verb: str, word: str, after: int, *options: str) -> subprocess.Popen[str]:
    """The command, which has printed that many lines that begin with the word."""
    process = desk.start(verb, "dev", "--yes", *options)
    assert process.stdout is not None
    seen = 0
    while seen < after:
        line = process.stdout.readline()
        assert line, "the command ended too early"
        seen += line.startswith(f"  {word}")
    return process


def numbers(desk: Desk) -> dict[str, tuple[int, int, int]]:
    """What an up does now: created, changed or deleted, and left as it is, by stack."""
    done = desk.run("up", "dev", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    stacks = {name: found[name] for name in ("base", "cluster")}
    return {
        name: (one["created"], one["updated"] + one["replaced"] + one["deleted"], one["same"])
        for name, one in stacks.items()
    }


def family(pid: int) -> list[int]:
    """The process and all its descendants, as the system knows them now."""
    parents = {int(one): _parent(int(one)) for one in os.listdir("/proc") if one.isdigit()}  # noqa: PTH208
    found = [pid]
    for member in found:
        found += [child for child, parent in parents.items() if parent == member]
    return found


def kill(pids: Sequence[int]) -> None:
    """kill -9 for those that are still there."""
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
