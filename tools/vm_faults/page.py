"""docs/vm-faults.md, as text. Pure: a run of some faults replaces their rows, and keeps the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_HEAD = """# Faults on virtual machines

Written by `make vm-faults`, which breaks a cluster of virtual machines (Debian 13, docs/vm-life.md), one fault after
the other, and looks at what the cluster does. Each row has the date of its last run.

| fault | what breaks | what should happen | what happened | on |
|---|---|---|---|---|"""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One fault and its last result. `found`: what happened; `date`: YYYY-MM-DD."""

    name: str
    title: str
    expected: str
    found: str
    date: str


def page(rows: Sequence[Row]) -> Iterator[str]:
    """The lines of the page."""
    yield _HEAD
    for row in rows:
        cells = (f"`{row.name}`", row.title, row.expected, row.found, row.date)
        yield f"| {' | '.join(cell.replace('|', '/').replace(chr(10), ' ') for cell in cells)} |"


def found_before(text: str) -> Mapping[str, tuple[str, str]]:
    """What happened and its date, by the name of each fault that the page has a row of."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return {name.strip("`"): (found, date) for name, _, _, found, date in rows}
