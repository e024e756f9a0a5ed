"""What a preflight found, as one HTML file to hand on: to who pays, or to who may raise a quota."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from corral.report.check import Finding, can_start, summary
from corral.report.html import template

_VERDICTS = ("fail", "warn", "ok", "skipped")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """What one check found."""

    name: str
    findings: tuple[Finding, ...]


def check_page(environment: str, region: str, findings: Sequence[Finding], asked: datetime) -> str:
    """The whole HTML file, the checks with failures first. Nothing in it is fetched from elsewhere."""
    sections = [Section(name=name, findings=tuple(held)) for name, held in groupby(findings, key=lambda one: one.check)]
    found = Counter(str(one.verdict) for one in findings)
    can = {True: "yes", False: "no", None: "not known, as nothing was seen"}[can_start(findings)]
    return template("check.html.j2").render(
        title=f"Can {environment} start now?",
        lead=f"{region}, asked at {asked:%Y-%m-%d %H:%M} UTC: {can}; {summary(findings)}.",
        counts=[(verdict, found[verdict]) for verdict in _VERDICTS],
        sections=sorted(sections, key=_worst),
    )


def _worst(section: Section) -> int:
    return min(_VERDICTS.index(str(one.verdict)) for one in section.findings)
