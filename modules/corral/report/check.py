"""What a preflight found, on a terminal and as a document. It takes findings as they are, of whatever room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Protocol

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from corral.report.documents import Document
from corral.report.tables import INDENT, facts, heading

_ORDER = ("fail", "warn", "ok", "skipped")
_NOT_SEEN = ("account", "warn")  # what a finding is about, and how bad it is, where a check was not let look
_STYLE = {"fail": "bold red", "warn": "yellow", "ok": "green"}


class Finding(Protocol):
    """One line of a check."""

    @property
    def check(self) -> str:
        """The name of the check."""
        ...

    @property
    def about(self) -> str:
        """What of the environment it concerns."""
        ...

    @property
    def verdict(self) -> str:
        """ok, warn, fail or skipped."""
        ...

    @property
    def text(self) -> str:
        """What was found."""
        ...

    @property
    def fix(self) -> str:
        """What would make it right; nothing where nothing need be done."""
        ...


def check_view(environment: str, region: str, findings: Sequence[Finding]) -> Iterator[RenderableType]:
    """All findings by check, each with its fix below it, then how many of each kind."""
    yield heading(f"Can {environment} start now?", region)
    made = [one for one in findings if one.verdict != "skipped"]
    for name, group in groupby(made, key=lambda one: one.check):
        yield Text(f"\n  {name}")
        yield _lines(group)
    if left_out := [one.check for one in findings if one.verdict == "skipped"]:
        yield Text()
        yield facts([("left out", ", ".join(left_out))])
    yield heading(summary(findings))


def _lines(findings: Iterable[Finding]) -> RenderableType:
    """The verdicts on the left, what was found on the right, wrapped in its own column."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for one in findings:
        table.add_row(Text(one.verdict, _STYLE[one.verdict]), Text(f"{one.about}: {one.text}"))
        if one.fix:
            table.add_row("", Text(f"-> {one.fix}"))
    return Padding(table, (0, 0, 0, 2 * INDENT))


def summary(findings: Sequence[Finding]) -> str:
    """How many there are of each kind, the worst first: `1 fail, 2 warn, 14 ok`."""
    counts = Counter(str(one.verdict) for one in findings)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in _ORDER if counts[verdict])


def can_start(findings: Sequence[Finding]) -> bool | None:
    """Whether nothing is in the way; None where nothing was seen, so that nobody knows."""
    if any(one.verdict == "fail" for one in findings):
        return False
    seen = [one for one in findings if one.verdict != "skipped" and (one.about, str(one.verdict)) != _NOT_SEEN]
    return True if seen else None


def check_document(environment: str, findings: Sequence[Finding]) -> Document:
    """What `corral check --json` prints."""
    counts = Counter(str(one.verdict) for one in findings)
    return {
        "schema": "corral.check/1",
        "environment": environment,
        "can_start": can_start(findings),
        "counts": {verdict: counts[verdict] for verdict in _ORDER},
        "findings": [
            {"check": one.check, "about": one.about, "verdict": str(one.verdict), "text": one.text, "fix": one.fix}
            for one in findings
        ],
    }


def failures(findings: Sequence[Finding]) -> list[str]:
    """A line for each failure: what, and what would be right."""
    return [f"{one.check}: {one.about}: {one.text} - {one.fix}" for one in findings if one.verdict == "fail"]
