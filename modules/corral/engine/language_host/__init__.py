"""The Python language host for a Pulumi CLI that lacks one: what the official distribution ships in Go, in Python.

`service` answers the engine, `program` is the child process that runs a Pulumi program, `install` makes a CLI find
them. A CLI from the official distribution has its own host and does not need this.
"""

from __future__ import annotations

import os
from pathlib import Path

HOST = """#!/bin/sh
# The Python language host of corral, for a Pulumi CLI without one.
# The same text for every checkout: several may share one cached CLI, and each names its own Python.
exec "${CORRAL_PYTHON:-python3}" -m corral.engine.language_host "$@"
"""


def install(directory: Path) -> Path:
    """The executable `pulumi-language-python` in the directory; beside the `pulumi` binary it is found silently."""
    host = directory / "pulumi-language-python"
    directory.mkdir(parents=True, exist_ok=True)
    if not host.exists() or host.read_text(encoding="utf-8") != HOST:
        draft = directory / f".{host.name}.{os.getpid()}"
        draft.write_text(HOST, encoding="utf-8")
        draft.chmod(0o755)
        draft.replace(host)  # an engine that starts meanwhile finds the old or the new one, never half of it
    return host
