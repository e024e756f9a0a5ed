"""How long the parts of a boot take, as systemd and apt record them on the machine.

Pure, but for `record`, which runs the commands. Seconds count from the start of the kernel.
Sources: systemctl(1), "show"; org.freedesktop.systemd1(5), "ActiveEnterTimestampMonotonic"; apt's history.log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

# What a boot waits for, in the order of the picture. A unit that a machine lacks has no time.
UNITS: Mapping[str, str] = {
    "cloud-init-main.service": "cloud-init",
    "cloud-final.service": "user data",
    "var-lib-corral.mount": "state volume",
    "home.mount": "/home",
    "mariadb.service": "MariaDB",
    "munge.service": "munge",
    "slurmdbd.service": "slurmdbd",
    "slurmctld.service": "slurmctld",
    "slurmd.service": "slurmd",
}
_PROPERTIES = "Id,InactiveExitTimestampMonotonic,ActiveEnterTimestampMonotonic"
_TIME = "%Y-%m-%d  %H:%M:%S"  # of apt, in local time, which is UTC on EC2's images


@dataclass(frozen=True, kw_only=True)
class BootPart:
    """One part of a boot. `began_s`, `ended_s`: seconds after the start of the kernel."""

    name: str
    began_s: float
    ended_s: float


@dataclass(frozen=True, kw_only=True)
class BootTimes:
    """The boot of one machine. `analyzed`: the line of `systemd-analyze time`; `blamed`: the slowest units."""

    machine: str
    parts: tuple[BootPart, ...]
    analyzed: str
    blamed: tuple[str, ...]


def record(machine: str, run: Callable[..., str]) -> BootTimes:
    """The boot of a machine. `run`: runs a command there, as root, and returns its output."""
    kernel_began = float(run("date", "+%s.%N")) - float(run("cat", "/proc/uptime").split()[0])
    shown = run("systemctl", "show", f"--property={_PROPERTIES}", *UNITS)
    installed = run("sh", "-c", "cat /var/log/apt/history.log")
    # An oneshot unit that installs packages keeps systemd from calling the boot finished: no time, no failure.
    analyzed = run("sh", "-c", "systemd-analyze time 2>&1 | head -1; true").strip()
    blamed = run("sh", "-c", "systemd-analyze blame --no-pager 2>/dev/null | head -8").splitlines()
    parts = sorted((*unit_parts(shown), *apt_parts(installed, kernel_began)), key=lambda part: part.began_s)
    return BootTimes(
        machine=machine, parts=tuple(parts), analyzed=analyzed, blamed=tuple(line.strip() for line in blamed)
    )


def unit_parts(shown: str) -> Iterator[BootPart]:
    """The units that became active, from the output of `systemctl show`: a block of lines each."""
    for block in shown.split("\n\n"):
        values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        began, ended = (int(values.get(f"{name}TimestampMonotonic") or 0) for name in ("InactiveExit", "ActiveEnter"))
        if began and values["Id"] in UNITS:
            yield BootPart(name=UNITS[values["Id"]], began_s=began / 1e6, ended_s=max(began, ended) / 1e6)


def apt_parts(history: str, kernel_began: float) -> Iterator[BootPart]:
    """The runs of apt since the start of the kernel (seconds since the epoch), from apt's history.log."""
    for block in history.split("\n\n"):
        values = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if {"Start-Date", "End-Date"} <= values.keys():
            began, ended = (_epoch_s(values[name]) - kernel_began for name in ("Start-Date", "End-Date"))
            if began > 0:
                yield BootPart(name="dpkg", began_s=began, ended_s=ended)


def _epoch_s(text: str) -> float:
    return datetime.strptime(text, _TIME).replace(tzinfo=UTC).timestamp()
