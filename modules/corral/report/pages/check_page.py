"""Preflight findings as one HTML file, to share with whoever pays or may raise a quota."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from corral.report.account.check_view import CheckFinding, can_start, summary
from corral.report.html_templates import template

_VERDICTS = ("fail", "warn", "ok", "skipped")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSection:
    """The findings of one check."""

    name: str
    findings: tuple[CheckFinding, ...]


def check_page(environment: str, region: str, findings: Sequence[CheckFinding], queried_at: datetime) -> str:
    """The HTML file, failed checks first. It loads nothing."""
    sections = [
        CheckSection(name=name, findings=tuple(held)) for name, held in groupby(findings, key=lambda one: one.check)
    ]
    found = Counter(str(one.verdict) for one in findings)
    can = {True: "yes", False: "no", None: "unknown, no check could look"}[can_start(findings)]
    return template("check.html.j2").render(
        title=f"Can {environment} start now?",
        lead=f"{region}, checked at {queried_at:%Y-%m-%d %H:%M} UTC: {can}; {summary(findings)}.",
        counts=[(verdict, found[verdict]) for verdict in _VERDICTS],
        sections=sorted(sections, key=_worst),
    )


def _worst(section: CheckSection) -> int:
    return min(_VERDICTS.index(str(one.verdict)) for one in section.findings)
