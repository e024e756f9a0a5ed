"""The example that trains, on machines of the box: JAX where they see it, and the same run without a cluster."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import jax

EXAMPLE = Path(__file__).parents[2] / "examples/train/train.py"
# What JAX is made of; machines have Debian's own Python and nothing else.
PACKAGES = ("jax", "jaxlib", "ml_dtypes", "numpy", "numpy.libs", "opt_einsum", "scipy", "scipy.libs")
JOB = "--export=ALL,PYTHON=/usr/bin/python3,PYTHONPATH=/home/python,JAX_COMPILATION_CACHE_DIR=/home/compiled"


def share(home: Path) -> None:
    """Puts the program and its JAX where all machines have it: /home/train.py and /home/python."""
    said = subprocess.run(["/usr/bin/python3", "-V"], capture_output=True, text=True, check=True).stdout
    here = f"{sys.version_info.major}.{sys.version_info.minor}."
    assert said.startswith(f"Python {here}"), f"machines have {said.strip()}, which cannot run the JAX of {here}"
    shutil.copy(EXAMPLE, home)
    for name in PACKAGES:
        shutil.copytree(Path(jax.__file__).parents[1] / name, home / "python" / name, copy_function=_linked)


def _linked(source: str, target: str) -> None:
    """As it costs neither time nor space."""
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy(source, target)


@contextmanager
def undisturbed(directory: Path, options: Sequence[str]) -> Iterator[Path]:
    """The file of losses of a run that nothing interrupts, which goes on meanwhile: two processes of this machine."""
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
