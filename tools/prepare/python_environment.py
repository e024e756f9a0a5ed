"""Virtual environments made from a lock file: the project's .venv, with corral itself in it, and others like it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from bootstrap import fetch_uv, find_python, find_uv, new_environment, without_redirection
from steps import ROOT, Step, answer, cache_dir, digest, say, work

NO_PACKAGES = "The Python packages of {lock} could not be fetched: is there a network, or is a mirror named?"


class PythonEnvironment(Step):
    """One virtual environment. It is complete when it holds the hash of what it was made from, written last."""

    def __init__(self, directory: Path, lock: Path, size: str, project: Path | None = None) -> None:
        self.directory, self.lock, self.size, self.project = directory, lock, size, project
        self.name = "venv-" + digest(str(directory).encode())[:12]
        self.python = directory / "bin" / "python"
        self.prepared = directory / "corral-prepared"
        self.unfinished = directory / "corral-unfinished"

    def missing(self) -> Sequence[str]:
        """Return a line if the environment is not there, was left unfinished, or was made from other files."""
        try:
            if self.python.exists() and self.prepared.read_text(encoding="utf-8") == self.wanted():
                return ()
        except OSError:
            pass
        count = sum("==" in line for line in self.lock.read_text(encoding="utf-8").splitlines())
        corral = ", and corral itself" if self.project else ""
        return (f"{self.directory}: {count} Python packages ({self.size}) from {self.lock.relative_to(ROOT)}{corral}",)

    def wanted(self) -> str:
        """Return the hash of all it is made from; its place is part of it, so a copied checkout makes its own."""
        project = (self.project / "pyproject.toml").read_bytes() if self.project else b""
        return digest(str(self.directory).encode(), self.lock.read_bytes(), project)

    def install(self) -> None:
        """Make or update the environment; one that an interruption left unfinished is made anew."""
        base = find_python()
        uv = find_uv() or fetch_uv()
        if self.unfinished.exists() or answer([str(self.python), "-c", ""]) is None:
            shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.unfinished.touch()
        self.prepared.unlink(missing_ok=True)
        say(f"Installing the Python packages with {'uv' if uv else 'pip'}")
        if uv:
            self.install_with_uv(uv, base)
        else:
            self.install_with_pip()
        self.prepared.write_text(self.wanted(), encoding="utf-8")
        self.unfinished.unlink()

    def install_with_uv(self, uv: str, base: str) -> None:
        """Bring the environment to exactly the lock's state."""
        env = without_redirection()
        if not self.python.exists():
            made = [uv, "venv", "--quiet", "--no-python-downloads", "--allow-existing", "--python", base]
            work([*made, str(self.directory)], f"uv could not make {self.directory}.", env)
        quiet = ["--quiet", "--python", str(self.python)]
        work([uv, "pip", "sync", *quiet, "--require-hashes", str(self.lock)], self.no_packages(), env)
        self.install_project([uv, "pip", "install", *quiet])

    def install_with_pip(self) -> None:
        """Bring the environment to the lock's state; what the lock does not name is left where it is."""
        if answer([str(self.python), "-m", "pip", "--version"]) is None:
            new_environment(self.directory)
        pip = [str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "2"]
        work([*pip, "--require-hashes", "-r", str(self.lock)], self.no_packages(), without_redirection())
        self.install_project(pip)

    def install_project(self, install: Sequence[str]) -> None:
        """Install corral editable, with the build backend that the lock brought: nothing more is fetched."""
        if self.project:
            editable = ["--no-deps", "--no-build-isolation", "--editable", str(self.project)]
            work([*install, *editable], "corral itself could not be installed.", without_redirection())

    def no_packages(self) -> str:
        """Return the sentence for packages that cannot be had."""
        return NO_PACKAGES.format(lock=self.lock.relative_to(ROOT))

    def ready(self) -> str:
        """Return where it is."""
        return str(self.directory.relative_to(ROOT) if ROOT in self.directory.parents else self.directory)


def project_environment() -> PythonEnvironment:
    """Return the .venv of this checkout."""
    return PythonEnvironment(ROOT / ".venv", ROOT / "requirements.lock", "about 1 GB", project=ROOT)


def rival_environment() -> PythonEnvironment:
    """Return the environment with AWS ParallelCluster that `make bench` compares with, one for each user."""
    lock = ROOT / "benchmarks" / "parallelcluster.txt"
    return PythonEnvironment(cache_dir() / "parallelcluster", lock, "about 120 MB")
