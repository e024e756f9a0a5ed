"""Virtual environments from lock files: the project's .venv with corral itself, and ParallelCluster's."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from bootstrap import fetch_uv, find_python, find_uv, new_environment, without_redirection
from steps import ROOT, Step, cache_dir, digest, output_of, run_quietly, say

NO_PACKAGES = "The packages of {lock} could not be fetched: check the network, or set a mirror (UV_DEFAULT_INDEX)."


class PythonEnvironment(Step):
    """A virtual environment. It is complete when it holds the hash of its inputs, which is written last."""

    def __init__(self, directory: Path, lock: Path, size: str, project: Path | None = None) -> None:
        self.directory, self.lock, self.size, self.project = directory, lock, size, project
        self.name = "venv-" + digest(str(directory).encode())[:12]
        self.python = directory / "bin" / "python"
        self.prepared = directory / "corral-prepared"
        self.unfinished = directory / "corral-unfinished"

    def missing(self) -> Sequence[str]:
        """Return a line if the environment is missing, unfinished or made from other inputs."""
        try:
            if self.python.exists() and self.prepared.read_text(encoding="utf-8") == self.input_hash():
                return ()
        except OSError:
            pass
        count = sum("==" in line for line in self.lock.read_text(encoding="utf-8").splitlines())
        corral = ", and corral itself" if self.project else ""
        return (f"{self.directory}: {count} Python packages ({self.size}) from {self.lock.relative_to(ROOT)}{corral}",)

    def input_hash(self) -> str:
        """Return the hash of its inputs. Its path is one of them, so a copied checkout makes its own."""
        project = (self.project / "pyproject.toml").read_bytes() if self.project else b""
        return digest(str(self.directory).encode(), self.lock.read_bytes(), project)

    def install(self) -> None:
        """Create or update the environment; recreate an unfinished one."""
        base = find_python()
        uv = find_uv() or fetch_uv()
        if self.unfinished.exists() or output_of([str(self.python), "-c", ""]) is None:
            shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.unfinished.touch()
        self.prepared.unlink(missing_ok=True)
        say(f"Installing the Python packages with {'uv' if uv else 'pip'}")
        if uv:
            self.install_with_uv(uv, base)
        else:
            self.install_with_pip()
        self.prepared.write_text(self.input_hash(), encoding="utf-8")
        self.unfinished.unlink()

    def install_with_uv(self, uv: str, base: str) -> None:
        """Install exactly the packages of the lock file."""
        env = without_redirection()
        if not self.python.exists():
            made = [uv, "venv", "--quiet", "--no-python-downloads", "--allow-existing", "--python", base]
            run_quietly([*made, str(self.directory)], f"uv could not create {self.directory}.", env)
        quiet = ["--quiet", "--python", str(self.python)]
        run_quietly([uv, "pip", "sync", *quiet, "--require-hashes", str(self.lock)], self.no_packages(), env)
        self.install_project([uv, "pip", "install", *quiet])

    def install_with_pip(self) -> None:
        """Install the packages of the lock file; other packages stay."""
        if output_of([str(self.python), "-m", "pip", "--version"]) is None:
            new_environment(self.directory)
        pip = [str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "2"]
        run_quietly([*pip, "--require-hashes", "-r", str(self.lock)], self.no_packages(), without_redirection())
        self.install_project(pip)

    def install_project(self, install: Sequence[str]) -> None:
        """Install corral as editable, with the locked build backend; this fetches nothing."""
        if self.project:
            editable = ["--no-deps", "--no-build-isolation", "--editable", str(self.project)]
            run_quietly([*install, *editable], "corral itself could not be installed.", without_redirection())

    def no_packages(self) -> str:
        """Return the error for packages that could not be fetched."""
        return NO_PACKAGES.format(lock=self.lock.relative_to(ROOT))

    def ready(self) -> str:
        """Return its path."""
        return str(self.directory.relative_to(ROOT) if ROOT in self.directory.parents else self.directory)


def project_environment() -> PythonEnvironment:
    """Return the .venv of this checkout."""
    return PythonEnvironment(ROOT / ".venv", ROOT / "requirements.lock", "about 1 GB", project=ROOT)


def parallelcluster_environment() -> PythonEnvironment:
    """Return the environment with AWS ParallelCluster for `make bench`, one for each user."""
    lock = ROOT / "benchmarks" / "parallelcluster.txt"
    return PythonEnvironment(cache_dir() / "parallelcluster", lock, "about 120 MB")
