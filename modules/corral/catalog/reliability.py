"""How often training jobs were interrupted, by what, and how long it took to go on, as published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any

from corral.catalog.tables import read_toml

_HOURS_PER_DAY = 24


class Cause(StrEnum):
    """What interrupts a job: the first five are the machines', the last is the market's."""

    HARDWARE = "hardware"
    NETWORK = "network"
    SOFTWARE = "software"
    MAINTENANCE = "maintenance"
    UNKNOWN = "unknown"
    SPOT = "spot"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureStudy:
    """A cluster whose interruptions were counted. `causes`: how many of each; empty where only the sum is published."""

    name: str
    accelerator: str
    accelerators_per_node: int
    per_node_day: float
    causes: Mapping[Cause, int]
    source: str

    @property
    def per_accelerator_h(self) -> float:
        """Interruptions for each accelerator and hour."""
        return self.per_node_day / _HOURS_PER_DAY / self.accelerators_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredJobs:
    """Mean time between failures of jobs with so many accelerators."""

    accelerators: int
    mtbf_h: float
    source: str

    @property
    def per_h(self) -> float:
        """Interruptions of such a job in an hour."""
        return 1 / self.mtbf_h


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryTime:
    """From an interruption until the job computes again, as somebody published it."""

    name: str
    what: str
    least_s: int | None
    most_s: int
    source: str


@cache
def failure_studies() -> tuple[FailureStudy, ...]:
    """Every study, by name."""
    rows = read_toml("reliability.toml")["studies"]
    return tuple(_study(name, rows[name]) for name in sorted(rows))


@cache
def measured_jobs() -> tuple[MeasuredJobs, ...]:
    """Jobs of one size whose failures were measured, from small to large."""
    rows = read_toml("reliability.toml")["jobs"]
    return tuple(sorted((MeasuredJobs(**row) for row in rows), key=lambda job: job.accelerators))


@cache
def recovery_times() -> tuple[RecoveryTime, ...]:
    """Published times, by name."""
    rows = read_toml("reliability.toml")["recovery"]
    return tuple(RecoveryTime(name=name, **{"least_s": None, **rows[name]}) for name in sorted(rows))


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
