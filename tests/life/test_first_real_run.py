"""The commands of docs/first-real-run.md, run in the box in the page's order, with its specs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import first_run_page
from boxes import inventory, running_box
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.slurm, pytest.mark.box, pytest.mark.long]
BOOT_S = 180
# Commands of the page that know no account.
LOCAL = ("new", "plan", "doctor")
CONFIRMED = ("up", "down", "bootstrap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Who follows the page, with `--box`, as it says."""

    directory: Path
    box: Path

    def run(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a command of the page to its end."""
        command, dashes, inside = list(words), [], []
        if "--" in words:
            at = words.index("--")
            command, dashes, inside = list(words[:at]), ["--"], list(words[at + 1 :])
        if command[0] not in LOCAL:
            command += ["--box", *(["--yes"] if command[0] in CONFIRMED and "--preview" not in command else [])]
        project = self.directory / "first-run"
        return subprocess.run(
            [sys.executable, "-m", "corral.cli", *command, *dashes, *inside],
            cwd=project if project.is_dir() else self.directory,
            env={**os.environ, "CORRAL_BOX_DIR": str(self.box), "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    def until_booted(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """The same for a command on the head, which answers once it has booted."""
        for _ in range(BOOT_S):
            done = self.run(words)
            if done.returncode == 0 and "inval" not in done.stdout:
                break
            time.sleep(1)
        return done


def test_the_page_is_followed_in_the_box(tmp_path: Path) -> None:
    with running_box(tmp_path / "box", machines=True) as box:
        reader = Reader(directory=tmp_path, box=box.dir)
        before = inventory(box.dir)
        for number, words in enumerate(first_run_page.commands()):
            with step(f"{number}: corral {' '.join(words)}"):
                done = reader.until_booted(words) if "--" in words else reader.run(words)
                assert done.returncode == 0, done.stdout + done.stderr
            if words[0] == "new":
                first_run_page.write_specs(tmp_path / "first-run")
            if words[-1] == "/home/first.out":
                with step("two machines ran the job"):
                    assert len(set(done.stdout.split())) == 2
        with step("nothing is left but what bootstrap has made, and the two keys that wait for their deletion"):
            after = inventory(box.dir)
            left = {kind: len(ids) - len(before.get(kind, ())) for kind, ids in after.items()}
            assert {kind: number for kind, number in left.items() if number} == {
                "iam/policy": 7,
                "kms/alias": 1,
                "kms/key": 3,
                "s3/bucket": 1,
                "ssm/document": 5,
            }
