"""`corral-agent` on the command line: exit codes, and no traceback for what a person can get wrong."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from corral.render import cluster_files, deployed_json
from render.plans import deployed, dev

MODULES = Path(__file__).parents[2] / "modules"


def agent(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What the agent did, run by a Python that sees no installed package."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(MODULES)}
    command = [sys.executable, "-S", "-m", "corral.agent", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_boot_installs_from_a_directory_in_the_buckets_place(tmp_path: Path) -> None:
    files = {**cluster_files(dev()), "deployed.json": deployed_json(deployed())}
    for name, text in files.items():
        (tmp_path / "bucket" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "bucket" / name).write_text(text)
    done = agent("boot", "--role", "head", "--store", str(tmp_path / "bucket"), "--root", str(tmp_path / "root"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "root/etc/slurm/slurm.conf").read_text() == files["slurm/slurm.conf"]


@pytest.mark.parametrize("command", ["resume", "suspend", "resume-failed", "nonsense"])
def test_a_command_that_does_not_exist_is_an_error_of_usage(command: str) -> None:
    done = agent(command)
    assert (done.returncode, f"invalid choice: '{command}'" in done.stderr) == (2, True)


def test_no_command_is_an_error_of_usage() -> None:
    assert agent().returncode == 2


def test_an_empty_store_is_one_sentence(tmp_path: Path) -> None:
    done = agent("boot", "--role", "head", "--store", str(tmp_path), "--root", str(tmp_path / "root"))
    assert (done.returncode, len(done.stderr.splitlines()), "cluster.json is missing" in done.stderr) == (1, 1, True)


def test_missing_facts_are_one_sentence(tmp_path: Path) -> None:
    done = agent("boot", "--role", "head", "--facts", str(tmp_path / "boot.json"))
    assert (done.returncode, len(done.stderr.splitlines()), "No such file" in done.stderr) == (1, 1, True)


def test_broken_facts_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "boot.json").write_text("{}")
    done = agent("boot", "--role", "head", "--facts", str(tmp_path / "boot.json"))
    assert (done.returncode, len(done.stderr.splitlines()), "missing fields" in done.stderr) == (1, 1, True)
