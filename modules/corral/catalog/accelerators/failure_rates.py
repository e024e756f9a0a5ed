"""Published rates and causes of interruptions of training jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any

from corral.catalog.loader.data_files import read_toml

_HOURS_PER_DAY = 24


class Cause(StrEnum):
    """Causes of interruptions: the first five come from machines, the last from the market."""

    HARDWARE = "hardware"
    NETWORK = "network"
    SOFTWARE = "software"
    MAINTENANCE = "maintenance"
    UNKNOWN = "unknown"
    SPOT = "spot"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureStudy:
    """A cluster with counted interruptions. `causes`: the count of each; empty if only the total is published."""

    name: str
    accelerator: str
    accelerators_per_node: int
    per_node_day: float
    causes: Mapping[Cause, int]
    source: str

    @property
    def per_accelerator_h(self) -> float:
        """Interruptions per accelerator and hour."""
        return self.per_node_day / _HOURS_PER_DAY / self.accelerators_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredJobs:
    """The mean time between failures of jobs with this many accelerators."""

    accelerators: int
    mtbf_h: float
    source: str

    @property
    def per_h(self) -> float:
        """Interruptions of such a job per hour."""
        return 1 / self.mtbf_h


@cache
def failure_studies() -> tuple[FailureStudy, ...]:
    """Return every study, by name."""
    rows = read_toml("reliability.toml")["studies"]
    return tuple(_study(name, rows[name]) for name in sorted(rows))


@cache
def measured_jobs() -> tuple[MeasuredJobs, ...]:
    """Return the measured failure rates of jobs by size, from small to large."""
    rows = read_toml("reliability.toml")["jobs"]
    return tuple(sorted((MeasuredJobs(**row) for row in rows), key=lambda job: job.accelerators))


def _study(name: str, row: Mapping[str, Any]) -> FailureStudy:
    counts: Counter[Cause] = Counter()
    for entry in row.get("causes", ()):
        counts[Cause(entry["cause"])] += entry["count"]
    if "per_1000_node_days" in row:
        per_node_day = row["per_1000_node_days"] / 1000
    else:
        per_node_day = counts.total() / (row["nodes"] * row["days"])
    return FailureStudy(
        name=name,
        accelerator=row["accelerator"],
        accelerators_per_node=row["accelerators_per_node"],
        per_node_day=per_node_day,
        causes=MappingProxyType({cause: counts[cause] for cause in Cause if counts[cause]}),
        source=row["source"],
    )
