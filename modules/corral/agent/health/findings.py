"""The findings of health checks, as one frozen record."""

from dataclasses import dataclass
from enum import StrEnum

REPLACE = "replace the machine"


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
    LUSTRE_EFA = "lustre-efa"
    DISK_MISSING = "disk-missing"
    SCOPE_MISSING = "scope-missing"
    CLOCK = "clock"
    TOOL = "tool"


class Severity(StrEnum):
    """SICK: no job may run on the machine, and a new one fixes it. WARNING: logged only."""

    SICK = "sick"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFinding:
    """One problem. `message`: what is wrong. `fix`: what to do, or ""."""

    kind: FindingKind
    severity: Severity
    message: str
    fix: str = ""

    @property
    def text(self) -> str:
        """The message with its fix, as in the log and in a drain reason."""
        return f"{self.message}: {self.fix}" if self.fix else self.message

    @property
    def is_sick(self) -> bool:
        """True if no job may run on the machine."""
        return self.severity is Severity.SICK


def sick(kind: FindingKind, message: str, fix: str = REPLACE) -> HealthFinding:
    """Return a finding that bars jobs from the machine; as a rule, a new one fixes it."""
    return HealthFinding(kind=kind, severity=Severity.SICK, message=message, fix=fix)


def warning(kind: FindingKind, message: str) -> HealthFinding:
    """Return a finding that is only logged: nothing to fix."""
    return HealthFinding(kind=kind, severity=Severity.WARNING, message=message)
