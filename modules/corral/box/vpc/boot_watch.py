"""Emulated kernels that stand still before their first process, and are reset.

QEMU's emulation sometimes loses the timer interrupt of a second processor: its APIC has it in service, and no code runs
for it (seen once so far, with QEMU 10.0). The kernel then reports a stall each minute, for ever.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from pathlib import Path

from corral.box.vpc.qmp import QmpCommand, QmpError, execute

_STEP_S = 10.0
_TAIL = 1 << 20  # bytes of the console
_BEGIN, _STALL, _FIRST_PROCESS = "Linux version ", "detected stalls on CPUs", "systemd[1]:"


def watch_boots(process: subprocess.Popen[bytes], monitor: Path, console: Path) -> None:
    """Reset the machine whenever its kernel stands still at a boot, until its QEMU has ended."""
    while process.poll() is None:
        if stands_still(_tail(console)):
            with contextlib.suppress(QmpError):  # it has ended meanwhile
                execute(monitor, QmpCommand("system_reset"))
            with contextlib.suppress(OSError), console.open("a", encoding="utf-8") as log:
                log.write(f"\n{_BEGIN}unknown: corral reset an emulated kernel that stood still\n")
        time.sleep(_STEP_S)


def stands_still(console: str) -> bool:
    """Whether the last boot on a console has a stall and no first process. Later stalls are those of a busy host."""
    boot = console.rpartition(_BEGIN)[2]
    return _STALL in boot and _FIRST_PROCESS not in boot


def _tail(console: Path) -> str:
    try:
        with console.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
