"""The process between a command and its engine: it stays when the command is killed, and lets the engine end in order.

It is run as a file (`python -I supervisor.py LIFELINE LOG PROGRAM ...`), knows only the standard library, and starts a
program in a session of its own, so that a Ctrl-C at the terminal reaches only the command, which passes it on. When the
command is gone - whatever killed it, its end of the lifeline pipe closes - the program is interrupted once: a Pulumi
engine then starts nothing new, waits for what is under way, saves it, and ends. Its output goes to a file and not to a
pipe, because writing to a pipe that nobody reads would kill it. Locks that this process inherits last as long as it.
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
SIGNALLED = 128  # a shell's way to tell a signal in an exit status


def main(lifeline: int, log: str, command: list[str]) -> int:
    """The exit status of the program."""
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
    """Where this process is killed too, the kernel interrupts the engine (Linux only)."""
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
