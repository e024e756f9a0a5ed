"""The process between a command and its engine: it stays when the command is killed, and lets the engine end in order.

It is run as a file (`python -I supervisor.py`), knows nothing but the standard library, and starts one program in a
session of its own, so that a Ctrl-C at the terminal reaches only the command, which passes it on. When the command is
gone - its end of the lifeline pipe closes, whatever killed it - the program is interrupted once: a Pulumi engine then
starts nothing new, waits for what is under way and saves it. Locks whose descriptors were handed over are held until
the program has ended.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from types import FrameType

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
KILLED = 128  # a shell's way to tell a signal in an exit status


def main(arguments: list[str]) -> int:
    """The exit status of the program: `LIFELINE LOG PROGRAM [ARGUMENT...]`."""
    lifeline, log, *command = arguments
    parent = os.getpid()
    with open(log, "ab") as sink:  # noqa: PTH123 - pathlib costs a tenth of this process's life
        engine = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            # The engine must not outlive this process unnoticed either.
            preexec_fn=lambda: _interrupt_when_orphaned(parent),
        )
    signals = _pass_on(engine)
    ended = _await_end(engine, int(lifeline))
    signal.set_wakeup_fd(-1)
    os.close(signals)
    return ended if ended >= 0 else KILLED - ended


def _interrupt_when_orphaned(parent: int) -> None:
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGINT)


def _pass_on(engine: subprocess.Popen[bytes]) -> int:
    """Lets every signal that asks this process to end reach the engine as an interrupt."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        if engine.poll() is None:
            engine.send_signal(signal.SIGINT)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    return os.open(os.devnull, os.O_RDONLY)


def _await_end(engine: subprocess.Popen[bytes], lifeline: int) -> int:
    while engine.poll() is None:
        pass
    return engine.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
