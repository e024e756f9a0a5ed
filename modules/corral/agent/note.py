"""What slurmctld's programs do: they note what is wanted for the keeper (`spool`), wake it, and return.

`python3 -I -S note.py VERB NODES`. slurmctld waits for this, so it imports little, not even pathlib, and nothing of
corral, and copies Slurm's file about the jobs unread, however large that is.
"""

# ruff: noqa: PTH104, PTH118, PTH123

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence

SPOOL = "/var/lib/corral/notes"
BELL = "/run/corral/bell"
SUFFIX = ".json"


def leave_note(verb: str, nodes: str, environment: Mapping[str, str] = os.environ, spool: str = SPOOL) -> str:
    """The file of the new note: a line of JSON, then what Slurm's own file says of the jobs.

    That file is gone after some seconds.
    """
    draft = os.path.join(spool, f"{time.time_ns()}-{os.getpid()}")
    with open(f"{draft}.new", "wb") as note:
        note.write(json.dumps({"verb": verb, "nodes": nodes}).encode() + b"\n")
        note.write(_resume_file(environment.get("SLURM_RESUME_FILE")))
    os.rename(f"{draft}.new", f"{draft}{SUFFIX}")
    return f"{draft}{SUFFIX}"


def ring(bell: str = BELL) -> None:
    """Tells the keeper that there is a note; without a keeper the note waits."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.setblocking(False)  # a keeper that is busy hears one ring; slurmctld must not wait for it
        line.connect(bell)
        line.send(b"!")


def main(arguments: Sequence[str]) -> int:
    """0 when the note is left; 1 with a line where it cannot be, 2 where it was asked wrongly."""
    if len(arguments) != 2:
        print("usage: note.py resume|resume-failed|suspend NODES", file=sys.stderr)  # noqa: T201
        return 2
    try:
        leave_note(arguments[0], arguments[1])
    except OSError as error:
        print(f"corral-agent: {arguments[0]} {arguments[1]}: {error}", file=sys.stderr)  # noqa: T201
        return 1
    ring()
    return 0


def _resume_file(given: str | None) -> bytes:
    """What Slurm's file says. Nodes are wanted also where it is gone: then nobody knows of their jobs."""
    if given:
        with contextlib.suppress(OSError), open(given, "rb") as said:
            return said.read()
    return b""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
