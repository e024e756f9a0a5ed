"""The training example on machines of the box: JAX for them, and the same run without a cluster."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples/train/train.py"
# JAX and its dependencies; machines only have Debian's Python.
PACKAGES = ("jax", "jaxlib", "ml_dtypes", "numpy", "numpy.libs", "opt_einsum", "scipy", "scipy.libs")
JOB = "--export=ALL,PYTHON=/usr/bin/python3,PYTHONPATH=/home/python,JAX_COMPILATION_CACHE_DIR=/home/compiled"


def share(home: Path) -> None:
    """Copy the program and its JAX to the shared file system: /home/train.py and /home/python."""
    version = subprocess.run(["/usr/bin/python3", "-V"], capture_output=True, text=True, check=True).stdout
    here = f"{sys.version_info.major}.{sys.version_info.minor}."
    assert version.startswith(f"Python {here}"), f"machines have {version.strip()}, which cannot run the JAX of {here}"
    shutil.copy(EXAMPLE, home)
    found = find_spec("jax")  # to import it takes seconds, in each worker that collects tests
    assert found and found.origin
    for name in PACKAGES:
        shutil.copytree(Path(found.origin).parents[1] / name, home / "python" / name, copy_function=linked)


def linked(source: str, target: str) -> None:
    """Link the file, which takes no time or space; copy it to another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)


@contextmanager
def undisturbed(directory: Path, options: Sequence[str]) -> Iterator[Path]:
    """The losses file of an uninterrupted run, two processes on this machine, which runs in the background."""
    directory.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, str(EXAMPLE), *options, "--checkpoints", str(directory / "checkpoints")]
    given = {**os.environ, "JAX_COORDINATOR_ADDRESS": address, "WORLD_SIZE": "2"}
    with (directory / "out").open("wb") as out:
        runs = [
            subprocess.Popen(command, env={**given, "RANK": str(rank)}, stdout=out, stderr=out) for rank in range(2)
        ]
    try:
        yield directory / "checkpoints.losses"
    finally:
        for run in runs:
            with suppress(subprocess.TimeoutExpired):
                run.wait(60)
            run.kill()
            run.wait()
