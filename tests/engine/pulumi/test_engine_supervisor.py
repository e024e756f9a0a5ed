"""The supervisor interrupts the engine cleanly whenever the command ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from corral.engine.pulumi import supervisor

# Prints when it is ready, and whether it was interrupted.
PROGRAM = """
import signal, sys, threading
interrupted = threading.Event()
signal.signal(signal.SIGINT, lambda *_: interrupted.set())
print("ready", flush=True)
interrupted.wait(120)
print("interrupted" if interrupted.is_set() else "left alone", flush=True)
"""


class Supervised:
    """A supervisor with a program whose output is a named pipe instead of a log."""

    def __init__(self, tmp_path: Path, program: str) -> None:
        self.log = tmp_path / "log"
        os.mkfifo(self.log)
        watched, self.lifeline = os.pipe()
        command = [sys.executable, "-I", "-S", supervisor.__file__, str(watched), str(self.log)]
        self.process = subprocess.Popen([*command, sys.executable, "-c", program], pass_fds=(watched,))
        os.close(watched)
        self.printed = self.log.open()

    def __enter__(self) -> Supervised:
        return self

    def __exit__(self, *failure: object) -> None:
        with suppress(OSError):
            os.close(self.lifeline)
        self.printed.close()
        self.process.wait()


def test_the_end_of_the_lifeline_interrupts_the_engine(tmp_path: Path) -> None:
    with Supervised(tmp_path, PROGRAM) as one:
        assert one.printed.readline() == "ready\n"
        os.close(one.lifeline)
        assert one.printed.read() == "interrupted\n"


def test_a_killed_supervisor_interrupts_the_engine(tmp_path: Path) -> None:
    with Supervised(tmp_path, PROGRAM) as one:
        assert one.printed.readline() == "ready\n"
        one.process.kill()
        assert one.printed.read() == "interrupted\n"


def test_interrupt_is_forwarded(tmp_path: Path) -> None:
    with Supervised(tmp_path, PROGRAM) as one:
        assert one.printed.readline() == "ready\n"
        one.process.send_signal(signal.SIGINT)
        assert one.printed.read() == "interrupted\n"


def test_exit_status_of_the_engine_is_returned(tmp_path: Path) -> None:
    with Supervised(tmp_path, "raise SystemExit(7)") as one:
        assert one.process.wait() == 7


def test_killed_engine_is_reported_by_its_signal(tmp_path: Path) -> None:
    with Supervised(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)") as one:
        assert one.process.wait() == 128 + 9
