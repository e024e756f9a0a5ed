"""The process between a command and its engine. It survives a kill of the command and lets the engine stop in order.

It runs as a file (`python -I supervisor.py LIFELINE LOG PROGRAM ...`), uses only the standard library, and starts the
program in its own session, so that Ctrl-C reaches only the command, which passes it on. When the command is gone, its
end of the lifeline pipe closes and the program gets one interrupt: a Pulumi engine then starts nothing new, finishes
and saves the running operations, and exits. Output goes to a file, since writing to a pipe without a reader would kill
the program. Locks that this process inherits last as long as it runs.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from types import FrameType

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
SIGNALLED = 128  # offset of signals in an exit status, as in shells


def main(lifeline: int, log: str, command: list[str]) -> int:
    """Runs the program. Returns its exit status."""
    own = os.getpid()
    with open(log, "ab") as sink:  # noqa: PTH123 - pathlib would be a third of this process's imports
        engine = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            preexec_fn=lambda: _interrupt_when_orphaned(own),
        )

    def interrupt(number: int = 0, frame: FrameType | None = None) -> None:
        engine.send_signal(signal.SIGINT)  # does nothing to a program that has ended

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    threading.Thread(target=_await_end_of_command, args=(lifeline, interrupt), daemon=True).start()
    status = engine.wait()
    return status if status >= 0 else SIGNALLED - status


def _interrupt_when_orphaned(parent: int) -> None:
    """Has the kernel interrupt the engine if this process is killed too (Linux only)."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGINT)


def _await_end_of_command(lifeline: int, interrupt: Callable[[], None]) -> None:
    while os.read(lifeline, 1):
        pass
    interrupt()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
