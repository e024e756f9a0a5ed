"""A command that is forked behaves as one whose process loaded the program itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from forked_corral import run_corral

PROJECT = Path(__file__).parents[1]
COMMANDS = (
    ("--version",),
    ("plan", "dev"),
    ("plan", "nobody"),
    ("plan", "--no-such-option"),
    ("status", "dev", "--json"),
)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_it_ends_and_prints_as_a_process_of_its_own(words: tuple[str, ...], tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"}
    real = subprocess.run(
        [sys.executable, "-m", "corral.cli", *words], cwd=PROJECT, env=environment, capture_output=True, text=True
    )
    forked = run_corral(*words, cwd=PROJECT, env=environment)
    assert (forked.returncode, forked.stdout, forked.stderr) == (real.returncode, real.stdout, real.stderr)


def test_it_runs_where_its_caller_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_corral("plan", "dev").returncode == 2
    assert run_corral("plan", "dev", cwd=PROJECT).returncode == 0


def test_it_has_the_variables_of_its_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORRAL_BOX_DIR", str(tmp_path / "first"))
    assert str(tmp_path / "first") in run_corral("box", "status", cwd=PROJECT).stdout
    monkeypatch.setenv("CORRAL_BOX_DIR", str(tmp_path / "second"))
    assert str(tmp_path / "second") in run_corral("box", "status", cwd=PROJECT).stdout


def test_it_reads_a_descriptor(tmp_path: Path) -> None:
    (tmp_path / "variables").write_text("NCCL_ALGO=Ring\n")
    with (tmp_path / "variables").open() as file:
        done = run_corral("lint-env", "-", cwd=PROJECT, stdin=file.fileno())
    assert "NCCL_ALGO" in done.stdout + done.stderr
