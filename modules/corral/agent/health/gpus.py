"""GPUs as nvidia-smi lists them: their number, memory errors, remapped rows and temperature.

Source: `nvidia-smi --help-query-gpu`, `nvidia-smi --help-query-remapped-rows`; NVIDIA GPU Memory Error Management.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from corral.agent.health.findings import FindingKind, HealthFinding, sick

# All drivers accept the name `clocks_throttle_reasons`. Newer ones call it clocks_event_reasons, also in the heading.
QUERY = (
    "index",
    "pci.bus_id",
    "ecc.errors.uncorrected.volatile.total",
    "clocks_throttle_reasons.hw_thermal_slowdown",
    "temperature.gpu",
)
ROWS_QUERY = ("gpu_bus_id", "remapped_rows.pending", "remapped_rows.failure")
# For metrics (`agent.metrics`): what the GPU does now, and what holds its clocks back.
USUAL_REASON = "sw_power_cap"  # at full load
CLOCK_REASONS = (USUAL_REASON, "hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake_slowdown")
MOST_GPUS = 64  # of a machine: what a node or a user's text claims beyond that is not believed
LOAD_QUERY = (
    *("index", "pci.bus_id", "utilization.gpu", "memory.used", "memory.total", "temperature.gpu", "power.draw"),
    "clocks.current.sm",
    *(f"clocks_throttle_reasons.{reason}" for reason in CLOCK_REASONS),
    *("ecc.errors.corrected.volatile.total", "ecc.errors.uncorrected.volatile.total"),
)
_NAME = re.compile(r"[a-z][a-z0-9_.]*( \[|$)")  # of a column, with its unit if it has one: `power.draw [W]`


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU that nvidia-smi lists. `uncorrected`: memory errors since the driver was loaded; None if ECC is off."""

    index: int
    bus_id: str
    uncorrected: int | None
    slowed_by_heat: bool
    temperature_c: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemappedRows:
    """The remapped rows of one GPU's memory."""

    bus_id: str
    pending: bool
    failed: bool


def read_gpus(text: str) -> tuple[Gpu, ...]:
    """The GPUs of `nvidia-smi --query-gpu=... --format=csv`. Raises ValueError for any other text."""
    return tuple(
        Gpu(
            index=int(row["index"]),
            bus_id=short_bus_id(row["pci.bus_id"]),
            uncorrected=_number(row["ecc.errors.uncorrected.volatile.total"]),
            slowed_by_heat=row["clocks_throttle_reasons.hw_thermal_slowdown"] == "Active",
            temperature_c=_number(row["temperature.gpu"]),
        )
        for row in table(text, QUERY)
    )


def read_remapped_rows(text: str) -> tuple[RemappedRows, ...]:
    """The rows of `nvidia-smi --query-remapped-rows=... --format=csv`. Raises ValueError for any other text."""
    return tuple(
        RemappedRows(
            bus_id=short_bus_id(row["gpu_bus_id"]),
            pending=row["remapped_rows.pending"] == "Yes",
            failed=row["remapped_rows.failure"] == "Yes",
        )
        for row in table(text, ROWS_QUERY)
    )


def evaluate_gpus(wanted: int, gpus: Iterable[Gpu]) -> Iterator[HealthFinding]:
    """The findings for the GPUs of a node that must have this many."""
    listed = tuple(gpus)
    if len(listed) < wanted:
        yield sick(FindingKind.GPU_MISSING, f"{len(listed)} of {wanted} GPUs answer")
    for gpu in listed:
        if gpu.uncorrected:
            errors = f"{gpu.uncorrected} uncorrected memory errors since the driver was loaded"
            yield sick(FindingKind.GPU_ECC, f"GPU {gpu.index}: {errors}")
        if gpu.slowed_by_heat:
            heat = f" at {gpu.temperature_c} C" if gpu.temperature_c is not None else ""
            yield sick(FindingKind.GPU_HOT, f"GPU {gpu.index}: slowed down by heat{heat}")


def evaluate_rows(rows: Iterable[RemappedRows], names: Mapping[str, str]) -> Iterator[HealthFinding]:
    """The findings for remapped rows. A pending remapping waits for a reset; memory errors are separate findings."""
    for row in rows:
        name = names.get(row.bus_id, f"GPU at {row.bus_id}")
        if row.failed:
            yield sick(FindingKind.GPU_ROWS, f"{name}: a bad row of its memory could not be remapped")
        elif row.pending:
            yield sick(FindingKind.GPU_ROWS, f"{name}: a bad row of its memory waits for a reset")


def names_by_bus(gpus: Iterable[Gpu]) -> Mapping[str, str]:
    """Names such as `GPU 3` by bus id."""
    return {gpu.bus_id: f"GPU {gpu.index}" for gpu in gpus}


def short_bus_id(text: str) -> str:
    """`a1:00` for nvidia-smi's `00000000:A1:00.0` and for the kernel log's `0000:a1:00`."""
    return ":".join(text.lower().partition(".")[0].split(":")[-2:])


def table(text: str, columns: Sequence[str]) -> Iterator[Mapping[str, str]]:
    """The rows by the names of the query. nvidia-smi keeps the query's order, but prints its driver's own names.

    Raises ValueError for a text that is no answer to this query.
    """
    lines = [line for line in text.splitlines() if "," in line]
    rows = list(csv.reader(lines, skipinitialspace=True))
    if not rows or len(rows[0]) != len(columns) or not all(_NAME.match(cell) for cell in rows[0]):
        raise ValueError(f"no heading of {len(columns)} columns in {text.strip()[:80]!r}")
    return (dict(zip(columns, row, strict=True)) for row in rows[1:])


def _number(text: str) -> int | None:
    """A count, or None for nvidia-smi's [N/A] or N/A."""
    return int(text) if text.isdigit() else None
