"""The setup before each target of make: it lists what it will install, installs it once, and continues after a kill.

The setup has to run before anything is installed, so each test runs it as a program of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PREPARE = ROOT / "tools/prepare"
TOOL = """
import sys, time
from steps import Step, appearing_whole, cache_dir, run_steps

class Tool(Step):
    name = "tool"

    def missing(self):
        return () if (cache_dir() / "tool").exists() else ("a tool",)

    def install(self):
        with appearing_whole(cache_dir() / "tool") as unfinished:
            (unfinished / "first").touch()
            print("the first half is installed", flush=True)
            time.sleep(60 if sys.argv[1:] else 0)
            (unfinished / "second").touch()

    def ready(self):
        return "a tool"

run_steps([Tool()])
"""
INSTALLED = ["To install, once:", "  a tool", "the first half is installed", "Ready: a tool"]


def start(program: str, cache: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """A program that imports the setup's modules, with a cache of its own."""
    environ = {**os.environ, "PYTHONPATH": str(PREPARE), "XDG_CACHE_HOME": str(cache), **environment}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def output(program: str, cache: Path, **environment: str) -> list[str]:
    """The lines that such a program prints until it ends."""
    return start(program, cache, **environment).communicate()[0].splitlines()


@pytest.mark.parametrize(
    ("target", "steps"), [("demo", "venv debian pulumi"), ("test", "venv debian pulumi browser containers")]
)
def test_demo_and_test_prepare_first(target: str, steps: str) -> None:
    done = subprocess.run(
        ["make", "--dry-run", target, "PYTHON=python3"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[0] == f"python3 -E -s tools/prepare {steps}"


def test_what_will_be_installed_is_listed_first(tmp_path: Path) -> None:
    assert output(TOOL, tmp_path) == INSTALLED


def test_what_is_installed_is_not_installed_again(tmp_path: Path) -> None:
    output(TOOL, tmp_path)
    assert output(TOOL, tmp_path) == ["Ready: a tool"]


def test_a_killed_setup_is_repeated_and_leaves_nothing_unfinished(tmp_path: Path) -> None:
    with start(TOOL, tmp_path, "slowly") as killed:
        assert killed.stdout is not None
        next(line for line in killed.stdout if line.startswith("the first half"))
        killed.kill()
    assert output(TOOL, tmp_path) == INSTALLED
    found = sorted(str(path.relative_to(tmp_path / "corral")) for path in (tmp_path / "corral").rglob("*"))
    assert found == ["tool", "tool.lock", "tool/first", "tool/second"]


def test_an_environment_is_complete_only_with_the_hash_of_its_inputs(tmp_path: Path) -> None:
    program = f"""
from pathlib import Path
from python_environment import PythonEnvironment
from steps import ROOT
environment = PythonEnvironment(Path({str(tmp_path)!r}), ROOT / "requirements.lock", "1 GB")
environment.python.parent.mkdir()
environment.python.touch()
print(len(environment.missing()))
environment.prepared.write_text("hash of other inputs")
print(len(environment.missing()))
environment.prepared.write_text(environment.input_hash())
print(len(environment.missing()))
"""
    assert output(program, tmp_path) == ["1", "1", "0"]


def test_a_system_without_apt_get_shows_which_programs_to_install(tmp_path: Path) -> None:
    program = """
from debian_packages import DebianPackages
from steps import CannotPrepareError
try:
    DebianPackages({"slurmctld": "no-such-program"}).install()
except CannotPrepareError as error:
    print(error)
"""
    (line,) = output(program, tmp_path, PATH=str(tmp_path))
    assert line == (
        "This is not Debian or Ubuntu: install the programs of these Debian packages, and run this again: slurmctld."
    )


def test_the_oldest_python_is_that_of_the_package(tmp_path: Path) -> None:
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    (oldest,) = output("from bootstrap import OLDEST_PYTHON; print(OLDEST_PYTHON)", tmp_path)
    assert (required, oldest) == (">=3.11", "(3, 11)")
