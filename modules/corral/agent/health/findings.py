"""The findings of health checks, as one frozen record."""

from dataclasses import dataclass
from enum import StrEnum


class FindingKind(StrEnum):
    """What is wrong; docs/health.md lists the values."""

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
    """SICK: no job may run on the machine, and a new one fixes it. WARNING: logged only."""

    SICK = "sick"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFinding:
    """One problem. `text`: what is wrong and what to do, in one sentence."""

    kind: FindingKind
    severity: Severity
    text: str

    @property
    def is_sick(self) -> bool:
        """True if no job may run on the machine."""
        return self.severity is Severity.SICK


def sick(kind: FindingKind, text: str) -> HealthFinding:
    """Return a finding that bars jobs from the machine."""
    return HealthFinding(kind=kind, severity=Severity.SICK, text=text)


def warning(kind: FindingKind, text: str) -> HealthFinding:
    """Return a finding that is only logged."""
    return HealthFinding(kind=kind, severity=Severity.WARNING, text=text)
