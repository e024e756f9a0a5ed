"""The table of `make bench`: measurement, corral's figure, ParallelCluster's, their ratio, the target."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Usage(NamedTuple):
    """The usage of one side: own time and CPU time in seconds, requests to AWS, calls of Slurm commands."""

    own_s: float
    cpu_s: float
    requests: float
    commands: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the table. `factor`: how many times less corral should take; `limit`: its maximum."""

    what: str
    unit: str
    ours: float
    theirs: float | None = None
    factor: float | None = None
    limit: float | None = None

    @property
    def reached(self) -> bool:
        """Whether corral reaches its target."""
        fast_enough = self.factor is None or self.theirs is None or self.ours * self.factor <= self.theirs
        return fast_enough and (self.limit is None or self.ours <= self.limit)

    @property
    def target(self) -> str:
        """The target in words."""
        factor = f">= {self.factor:g} times less" if self.factor is not None else ""
        limit = f"<= {self.limit:g} {self.unit}".strip() if self.limit is not None else ""
        return " and ".join(part for part in (factor, limit) if part) or "-"


HEADINGS = ("measurement", "corral", "ParallelCluster", "ratio", "target", "")


def print_table(rows: Sequence[Row]) -> None:
    """Print the rows below their headings, in columns."""
    lines = [HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cells(row: Row) -> tuple[str, ...]:
    ratio = f"{row.theirs / row.ours:.1f}" if row.theirs is not None and row.ours else "-"
    theirs = "-" if row.theirs is None else _figure(row.theirs, row.unit)
    verdict = "" if row.target == "-" else "reached" if row.reached else "MISSED"
    return (row.what, _figure(row.ours, row.unit), theirs, ratio, row.target, verdict)


def _figure(value: float, unit: str) -> str:
    digits = 2 if unit == "s" else 0
    return f"{value:.{digits}f} {unit}".strip()
