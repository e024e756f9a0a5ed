"""`corral` as a process of its own that does not load the program again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from forked_programs import CORRAL, fork_program


def run_corral(
    *arguments: str, cwd: Path | str | None = None, env: Mapping[str, str] | None = None, stdin: int | None = None
) -> subprocess.CompletedProcess[str]:
    """The completed `corral ARGUMENTS`; `stdin` is a descriptor, otherwise nothing can be read."""
    out, err = os.memfd_create("stdout"), os.memfd_create("stderr")
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        files = [nothing if stdin is None else stdin, out, err]
        environment = os.environ if env is None else env
        forked = fork_program(CORRAL, arguments, cwd=str(cwd or Path.cwd()), environment=environment, files=files)
        return subprocess.CompletedProcess(["corral", *arguments], forked.wait(), _text(out), _text(err))
    finally:
        for descriptor in (nothing, out, err):
            os.close(descriptor)


def _text(descriptor: int) -> str:
    with open(descriptor, encoding="utf-8", closefd=False) as file:
        file.seek(0)
        return file.read()
