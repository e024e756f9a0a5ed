"""Tools that come from PyPI into a private place of this user: uv, and a Go toolchain where the machine has none.

Their versions and hashes stand in tools/bootstrap/*.txt (made by `make lock`). What the project itself needs is not
here but in requirements.lock.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from steps import ROOT, CannotPrepareError, answer, appearing_whole, cache_dir, locked, numbers, say, work

OLDEST_PYTHON = (3, 11)
OLDEST_UV = (0, 5)  # tried: it knows every option that is used here
ASK_PYTHON = "import os, sys; print(*sys.version_info[:2], os.path.realpath(sys._base_executable))"


def find_python() -> str:
    """Return a Python >= 3.11: the one that runs this, if it is one, else the newest found by its usual name.

    A name on PATH is asked, not believed: pyenv puts names there that only print an error.
    """
    for name in (sys.executable, "python3.13", "python3.12", "python3.11", "python3"):
        reply = (answer([name, "-c", ASK_PYTHON]) or "").split(" ", 2)
        if len(reply) == 3 and (int(reply[0]), int(reply[1])) >= OLDEST_PYTHON:
            return reply[2]
    raise CannotPrepareError(
        "No Python 3.11 or newer was found: install one (Debian 12: apt-get install python3 python3-venv) "
        "or name it: make PYTHON=/path/to/python3.12."
    )


def find_uv() -> str | None:
    """Return a uv from PATH or from an earlier set-up, or None."""
    for name in (shutil.which("uv"), cache_dir() / pinned("uv") / "bin" / "uv"):
        reply = answer([str(name), "--version"]) if name else None
        if reply and numbers(reply.split()[1]) >= OLDEST_UV:
            return str(name)
    return None


def fetch_uv() -> str | None:
    """Return the uv that pip puts into the cache, or None if it cannot: everything goes on, slower, with pip."""
    try:
        return str(private_tool("uv") / "bin" / "uv")
    except CannotPrepareError as error:
        say(f"Going on with pip instead of uv: {error}")
        return None


def private_tool(package: str) -> Path:
    """Return the directory in the cache that holds the pinned package; it is fetched if it is not there."""
    target = cache_dir() / pinned(package)
    with locked(package):
        if not target.exists():
            say(f"Fetching {pinned(package)} from PyPI into {target}")
            with appearing_whole(target) as unfinished:
                pip_install(package, unfinished)
    return target


def pip_install(package: str, into: Path) -> None:
    """Install the pinned package into a plain directory: unlike a virtual environment, that can be moved."""
    python = new_environment(into / ".pip")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "2"]
    work(
        [*pip, "--require-hashes", "--no-deps", "--target", str(into), "-r", str(requirements(package))],
        f"pip could not fetch {pinned(package)} from PyPI: is there a network, or PIP_INDEX_URL for your mirror?",
    )
    shutil.rmtree(into / ".pip")


def new_environment(directory: Path) -> str:
    """Return the Python of a new virtual environment with pip in it; an existing directory is filled."""
    work(
        [find_python(), "-m", "venv", str(directory)],
        "Python's venv module does not work here: install it (Debian: apt-get install python3-venv) or install uv.",
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
    """Return the environment without what could point uv or pip at another virtual environment."""
    return {key: value for key, value in os.environ.items() if key not in {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME"}}
