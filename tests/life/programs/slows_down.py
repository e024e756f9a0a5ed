"""Stop the processes with a word on their command line again and again, as a machine that limps.

WORD [STOPPED_MS RUNNING_MS]: for 22 of every 50 milliseconds without numbers.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

word = sys.argv[1].encode()
stopped_s, running_s = (int(one) / 1000 for one in sys.argv[2:] or ("22", "28"))
found: list[int] = []
looked = 0.0
while True:
    if time.monotonic() - looked > 2:
        looked, found = time.monotonic(), []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words = (process / "cmdline").read_bytes().split(b"\0")
                if word in words and words[0].endswith(b"python3") and int(process.name) != os.getpid():
                    found.append(int(process.name))
    for number, seconds in ((signal.SIGSTOP, stopped_s), (signal.SIGCONT, running_s)):
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        time.sleep(seconds)
