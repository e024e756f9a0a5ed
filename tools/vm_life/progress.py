"""What a run has found so far, in a file beside its box: a run that continues takes no step twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.vm_life.boot_times import BootTimes

from corral.model.serialization import from_json, to_json


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """A step that was taken. `found`: in a few words. `date`: YYYY-MM-DD."""

    title: str
    seconds: float
    found: str
    date: str


@dataclass(frozen=True, kw_only=True)
class MachineResult:
    """A machine after its boot. `guest_mib`: what its system uses; `process_mib`: what its QEMU has of the host's."""

    boot: BootTimes
    guest_mib: int
    process_mib: int


@dataclass(frozen=True, kw_only=True)
class Found:
    """The steps that were taken, and the machines that booted in them, in order."""

    steps: tuple[StepResult, ...] = ()
    machines: tuple[MachineResult, ...] = ()


class Progress:
    """The findings in a file, which need not exist yet."""

    def __init__(self, *, file: Path) -> None:
        self._file = file
        self.found = from_json(Found, file.read_text(encoding="utf-8")) if file.exists() else Found()

    def has(self, title: str) -> bool:
        """True if a step of this title was taken."""
        return any(step.title == title for step in self.found.steps)

    def add(self, step: StepResult, machines: Sequence[MachineResult]) -> None:
        """Add a step and the machines that booted in it, and write the file."""
        self.found = Found(steps=(*self.found.steps, step), machines=(*self.found.machines, *machines))
        self._file.write_text(to_json(self.found), encoding="utf-8")
