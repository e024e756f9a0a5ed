"""What a check can find: one frozen record, whatever found it."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What is wrong; the values are shown, and stand in docs/health.md."""

    GPU_MISSING = "gpu-missing"
    GPU_ECC = "gpu-ecc"
    GPU_ROWS = "gpu-rows"
    GPU_HOT = "gpu-hot"
    NVLINK = "nvlink"
    XID = "xid"
    DCGM = "dcgm"
    NEURON_MISSING = "neuron-missing"
    EFA_MISSING = "efa-missing"
    MOUNT_MISSING = "mount-missing"
    DISK_MISSING = "disk-missing"
    CLOCK = "clock"
    TOOL = "tool"


class Severity(StrEnum):
    """SICK: no job may run there, and another machine would not have it. NOTE: worth a line in the log."""

    SICK = "sick"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as it should be. `text`: what is wrong, and what to do, in one sentence."""

    kind: Kind
    severity: Severity
    text: str

    @property
    def is_sick(self) -> bool:
        """Whether no job may run there."""
        return self.severity is Severity.SICK


def sick(kind: Kind, text: str) -> Finding:
    """A finding that no job may run with."""
    return Finding(kind=kind, severity=Severity.SICK, text=text)


def note(kind: Kind, text: str) -> Finding:
    """A finding that is only told."""
    return Finding(kind=kind, severity=Severity.NOTE, text=text)
