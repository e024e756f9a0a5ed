"""slurmctld's ResumeProgram, ResumeFailProgram and SuspendProgram: write a request, wake the autoscaler, return.

Run as a file: `python3 -I -S resume_program.py VERB NODES`. slurmctld waits for it, so it imports nothing of corral and
little else (not even pathlib), and copies Slurm's resume file without parsing it.
"""

# ruff: noqa: PTH104, PTH118, PTH123

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence

SPOOL = "/var/lib/corral/notes"  # on the state volume, whose paths are fixed
WAKE_SOCKET = "/run/corral/autoscaler.sock"
SUFFIX = ".json"


def write_request(verb: str, nodes: str, environment: Mapping[str, str] = os.environ, spool: str = SPOOL) -> str:
    """Write a request, and return its path. The file is a line of JSON, then Slurm's own file about the waiting jobs.

    Slurm removes its file after some seconds.
    """
    draft = os.path.join(spool, f"{time.time_ns()}-{os.getpid()}")
    with open(f"{draft}.new", "wb") as request:
        request.write(json.dumps({"verb": verb, "nodes": nodes}).encode() + b"\n")
        request.write(_resume_file(environment.get("SLURM_RESUME_FILE")))
    os.rename(f"{draft}.new", f"{draft}{SUFFIX}")
    return f"{draft}{SUFFIX}"


def wake(wake_socket: str = WAKE_SOCKET) -> None:
    """Wake the autoscaler. Without one the request waits."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.setblocking(False)  # one datagram is enough for a busy autoscaler; slurmctld must not wait for it
        line.connect(wake_socket)
        line.send(b"!")


def main(arguments: Sequence[str]) -> int:
    """The exit code: 0 if the request is written, 1 if it cannot be, 2 for wrong arguments."""
    if len(arguments) != 2:
        print("usage: resume_program.py resume|resume-failed|suspend NODES", file=sys.stderr)  # noqa: T201
        return 2
    try:
        write_request(arguments[0], arguments[1])
    except OSError as error:
        print(f"corral-agent: {arguments[0]} {arguments[1]}: {error}", file=sys.stderr)  # noqa: T201
        return 1
    wake()
    return 0


def _resume_file(path: str | None) -> bytes:
    """Slurm's file about the waiting jobs. Without it the nodes are launched as if for one job."""
    if path:
        with contextlib.suppress(OSError), open(path, "rb") as file:
            return file.read()
    return b""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
