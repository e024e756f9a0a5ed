"""The table of `make bench`: what was measured, corral's figure, the other's, their ratio, what is to be reached."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Taken(NamedTuple):
    """What one side took: own seconds, seconds of a processor, requests to AWS, commands of Slurm that it started."""

    own_s: float
    cpu_s: float
    requests: float
    commands: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the table. `times`: how many times less corral is to take; `most`: what it may take at most."""

    what: str
    unit: str
    ours: float
    theirs: float | None = None
    times: float | None = None
    most: float | None = None

    @property
    def reached(self) -> bool:
        """Whether corral keeps to its target."""
        enough = self.times is None or self.theirs is None or self.ours * self.times <= self.theirs
        return enough and (self.most is None or self.ours <= self.most)

    @property
    def target(self) -> str:
        """The target in words."""
        least = f">= {self.times:g} times less" if self.times is not None else ""
        most = f"<= {self.most:g} {self.unit}".strip() if self.most is not None else ""
        return " and ".join(part for part in (least, most) if part) or "-"


HEADINGS = ("what", "corral", "ParallelCluster", "ratio", "target", "")


def print_table(rows: Sequence[Row]) -> None:
    """Prints the rows below their headings, in columns."""
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
