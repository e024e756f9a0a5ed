"""Runs the command line as users do: in its own process, with a controlled environment."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path
from typing import Any

from forked_corral import run_corral

REPOSITORY = Path(__file__).parents[2]
HOME = Path(tempfile.gettempdir()) / "corral-cli-tests"
CORRAL = (sys.executable, "-m", "corral.cli")


def clean_environment(home: Path | None, **more: str) -> dict[str, str]:
    """PATH, a home (None: no home) and these variables; no account, no box, no colour settings."""
    kept = {"PATH": os.environ["PATH"], "AWS_EC2_METADATA_DISABLED": "true"}
    return {**kept, **({"HOME": str(home)} if home else {}), **more}


def on_terminal(*arguments: str, **environment: str) -> str:
    """The output of the command on a terminal of 80 columns with these variables."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environ = clean_environment(HOME, TERM="xterm-256color", **environment)
    with subprocess.Popen(
        [*CORRAL, *arguments], cwd=REPOSITORY, env=environ, stdin=slave, stdout=slave, stderr=slave
    ) as command:
        os.close(slave)
        seen = b"".join(iter(lambda: _read(master), b""))
    os.close(master)
    assert command.returncode is not None
    return seen.decode()


def _read(master: int) -> bytes:
    """The bytes read; empty when the last writer has ended, which Linux reports as an error."""
    try:
        return os.read(master, 1 << 16)
    except OSError:
        return b""


def corral(
    *arguments: str, cwd: Path = REPOSITORY, environment: dict[str, str] | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    """The completed command; by default with a home for tests. With `more`, a process that has loaded it itself."""
    environ = environment if environment is not None else clean_environment(HOME)
    if not more:
        return run_corral(*arguments, cwd=cwd, env=environ)
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.run([*CORRAL, *arguments], cwd=cwd, env=environ, text=True, check=False, **settings)
