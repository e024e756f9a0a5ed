"""What a check found, and what was asked for. Pure records."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan


class Verdict(StrEnum):
    """How bad it is. A failure stops an up; a warning may stop it, or make the cluster slow or dear."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of a check. `about`: what of the environment it concerns. `fix`: what would make it right."""

    check: str
    about: str
    verdict: Verdict
    text: str
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What shall start, and when: the time of asking, with its zone."""

    base: BasePlan
    cluster: ClusterPlan
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Teller:
    """Makes the findings of one check."""

    check: str

    def ok(self, about: str, text: str) -> Finding:
        """Nothing is in the way."""
        return Finding(check=self.check, about=about, verdict=Verdict.OK, text=text)

    def warn(self, about: str, text: str, fix: str) -> Finding:
        """Something may be."""
        return Finding(check=self.check, about=about, verdict=Verdict.WARN, text=text, fix=fix)

    def fail(self, about: str, text: str, fix: str) -> Finding:
        """Something is."""
        return Finding(check=self.check, about=about, verdict=Verdict.FAIL, text=text, fix=fix)


def worst(findings: tuple[Finding, ...]) -> Verdict:
    """The worst verdict of all; ok where there are none."""
    order = (Verdict.FAIL, Verdict.WARN, Verdict.OK)
    return next((verdict for verdict in order if any(one.verdict is verdict for one in findings)), Verdict.OK)
