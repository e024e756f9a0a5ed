"""What a preflight found, on a terminal and as a document. Takes any record with the fields of `CheckFinding`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Protocol

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from corral.report.plan.plan_json import Document
from corral.report.tables import INDENT, facts, heading

_ORDER = ("fail", "warn", "ok", "skipped")
_NOT_SEEN = ("account", "warn")  # subject and verdict of the finding of a check that was denied access
_STYLE = {"fail": "bold red", "warn": "yellow", "ok": "green"}


class CheckFinding(Protocol):
    """One finding of a check."""

    @property
    def check(self) -> str:
        """The name of the check."""
        ...

    @property
    def about(self) -> str:
        """The part of the environment that it concerns."""
        ...

    @property
    def verdict(self) -> str:
        """ok, warn, fail or skipped."""
        ...

    @property
    def message(self) -> str:
        """The finding, as a sentence."""
        ...

    @property
    def fix(self) -> str:
        """How to fix it; empty if nothing is wrong."""
        ...


def check_view(environment: str, region: str, findings: Sequence[CheckFinding]) -> Iterator[RenderableType]:
    """All findings by check, each with its fix below, then the counts by verdict."""
    yield heading(f"Can {environment} start now?", region)
    made = [one for one in findings if one.verdict != "skipped"]
    for name, group in groupby(made, key=lambda one: one.check):
        yield Text(f"\n  {name}")
        yield _lines(group)
    if left_out := [one.check for one in findings if one.verdict == "skipped"]:
        yield Text()
        yield facts([("skipped", ", ".join(left_out))])
    yield heading(summary(findings))


def _lines(findings: Iterable[CheckFinding]) -> RenderableType:
    """Verdicts on the left; findings on the right, wrapped in their own column."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for one in findings:
        table.add_row(Text(one.verdict, _STYLE[one.verdict]), Text(f"{one.about}: {one.message}"))
        if one.fix:
            table.add_row("", Text(f"-> {one.fix}"))
    return Padding(table, (0, 0, 0, 2 * INDENT))


def summary(findings: Sequence[CheckFinding]) -> str:
    """The counts by verdict, the worst first: `1 fail, 2 warn, 14 ok`."""
    counts = Counter(str(one.verdict) for one in findings)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in _ORDER if counts[verdict])


def can_start(findings: Sequence[CheckFinding]) -> bool | None:
    """True if no check failed; None if no check could look."""
    if any(one.verdict == "fail" for one in findings):
        return False
    seen = [one for one in findings if one.verdict != "skipped" and (one.about, str(one.verdict)) != _NOT_SEEN]
    return True if seen else None


def check_document(environment: str, findings: Sequence[CheckFinding]) -> Document:
    """The document of `corral check --json`."""
    counts = Counter(str(one.verdict) for one in findings)
    return {
        "schema": "corral.check/2",
        "environment": environment,
        "can_start": can_start(findings),
        "counts": {verdict: counts[verdict] for verdict in _ORDER},
        "findings": [
            {
                "check": one.check,
                "about": one.about,
                "verdict": str(one.verdict),
                "message": one.message,
                "fix": one.fix,
            }
            for one in findings
        ],
    }
