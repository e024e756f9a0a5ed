"""Which processes are slurmstepd, the daemon of a job's step, whatever other users call theirs. Source: proc(5)."""

import os
from pathlib import Path

_NAME = "slurmstepd"


def is_step_daemon(process: Path) -> bool:
    """Whether Slurm started it, as the user who started the agent: root. Raises OSError."""
    if not (process / "comm").read_text(encoding="utf-8", errors="replace").startswith(_NAME):
        return False
    # The real user: the daemon is now and then effectively the job's, and a program with setuid keeps its caller's.
    return users_of(process)[0] == str(os.getuid())


def users_of(process: Path) -> list[str]:
    """The real, the effective, the saved user of a process, and that of files. Raises OSError."""
    *_, users = (line for line in proc_lines(process / "status") if line.startswith("Uid:"))
    return users.split()[1:]


def proc_lines(file: Path) -> list[str]:
    """The lines of a file of /proc. Names in it have any byte but a newline, which the kernel escapes or refuses."""
    return file.read_text(encoding="utf-8", errors="replace").removesuffix("\n").split("\n")
