"""The wheel, built once, and corral installed from it outside the checkout.

Nothing is fetched: the build backend, pip and the dependencies come from the project's environment. corral itself does
not: its editable install there depends on a .pth file, and Python reads those only in its own site-packages, not in a
directory that a .pth file adds.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledCorral:
    """corral from the wheel, with environment variables and a working directory."""

    executable: Path
    python: Path
    environment: Mapping[str, str]
    directory: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `corral ARGUMENTS` in an empty directory, with an empty home."""
        return self._run(str(self.executable), *arguments)

    def run_python(self, program: str) -> str:
        """The output of a Python program in the environment of the installed corral; it must succeed."""
        done = self._run(str(self.python), "-c", program)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.directory, env=self.environment, capture_output=True, text=True, check=False
        )


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    directory = tmp_path_factory.mktemp("dist")
    must_run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(directory))
    (built,) = directory.glob("corral-*.whl")
    return built


@pytest.fixture(scope="session")
def installed_corral(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> InstalledCorral:
    """corral, installed from the wheel outside the checkout."""
    root = tmp_path_factory.mktemp("installed")
    venv.create(root / "venv", symlinks=True)
    python = root / "venv" / "bin" / "python"
    borrow_dependencies(root / "venv")
    pip = (sys.executable, "-m", "pip", "--python", str(python))
    must_run(*pip, "install", "--quiet", "--no-index", "--no-deps", str(wheel))
    for directory in ("home", "work"):
        (root / directory).mkdir()
    return InstalledCorral(
        executable=python.with_name("corral"),
        python=python,
        environment={"PATH": "/usr/bin:/bin", "HOME": str(root / "home"), "LANG": "C.UTF-8", "NO_COLOR": "1"},
        directory=root / "work",
    )


def borrow_dependencies(environment: Path) -> None:
    """Let the environment find the locked packages of the project's environment, after its own."""
    variables = {"base": str(environment), "platbase": str(environment)}
    own = Path(sysconfig.get_path("purelib", scheme="venv", vars=variables))
    (own / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")


def must_run(*command: str) -> None:
    """Run the command in the checkout; if it fails, show its output."""
    done = subprocess.run(command, cwd=CHECKOUT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
