"""Calling the command line as users do: a process of its own, with an environment that holds nothing by chance."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
HOME = Path(tempfile.gettempdir()) / "corral-cli-tests"
CORRAL = (sys.executable, "-m", "corral.cli")


def clean_environment(home: Path | None, **more: str) -> dict[str, str]:
    """PATH, a home (none for None), and what is given; no account, no box, no colour settings."""
    kept = {"PATH": os.environ["PATH"], "AWS_EC2_METADATA_DISABLED": "true"}
    return {**kept, **({"HOME": str(home)} if home else {}), **more}


def corral(
    *arguments: str, cwd: Path = REPOSITORY, environment: dict[str, str] | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    """The finished command, with a home of the tests' own unless another environment is given."""
    environ = environment if environment is not None else clean_environment(HOME)
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.run([*CORRAL, *arguments], cwd=cwd, env=environ, text=True, check=False, **settings)
