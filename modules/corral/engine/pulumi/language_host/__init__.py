"""A Python language host for a Pulumi CLI that lacks one. The official distribution has its own, written in Go.

`service` implements the engine's protocol, `program` is the child process that runs a Pulumi program, and `install`
writes the executable that the CLI looks for.
"""

from __future__ import annotations

import os
from pathlib import Path

HOST = """#!/bin/sh
# The Python language host of corral, for a Pulumi CLI without one.
# The same text for every checkout: several may share one cached CLI, and each names its own Python.
exec "${CORRAL_PYTHON:-python3}" -m corral.engine.pulumi.language_host "$@"
"""


def install(directory: Path) -> Path:
    """Writes `pulumi-language-python` into the directory. Next to the `pulumi` binary it causes no warning."""
    host = directory / "pulumi-language-python"
    directory.mkdir(parents=True, exist_ok=True)
    if not host.exists() or host.read_text(encoding="utf-8") != HOST:
        draft = directory / f".{host.name}.{os.getpid()}"
        draft.write_text(HOST, encoding="utf-8")
        draft.chmod(0o755)
        draft.replace(host)  # an engine that starts meanwhile finds the old or the new one, never half of it
    return host
