"""The records of preflight: the request, and the findings of its checks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan


class PreflightVerdict(StrEnum):
    """Severity. A failure stops `up`; a warning may stop it, or make the cluster slow or expensive."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightFinding:
    """One line of a check. `about`: the part of the environment it concerns. `fix`: what to do, or ""."""

    check: str
    about: str
    verdict: PreflightVerdict
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightRequest:
    """The plan to check, and the current time, with its zone."""

    base: BasePlan
    cluster: ClusterPlan
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingBuilder:
    """Builds the findings of one check."""

    check: str

    def ok(self, about: str, message: str) -> PreflightFinding:
        """Return an 'ok' finding: nothing to fix."""
        return PreflightFinding(check=self.check, about=about, verdict=PreflightVerdict.OK, message=message)

    def warn(self, about: str, message: str, fix: str) -> PreflightFinding:
        """Return a 'warn' finding: it works, but not as well as it could."""
        return PreflightFinding(check=self.check, about=about, verdict=PreflightVerdict.WARN, message=message, fix=fix)

    def fail(self, about: str, message: str, fix: str) -> PreflightFinding:
        """Return a 'fail' finding: `corral up` would fail, or its machines would not work."""
        return PreflightFinding(check=self.check, about=about, verdict=PreflightVerdict.FAIL, message=message, fix=fix)
