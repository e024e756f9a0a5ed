"""What GPUs do now, as nvidia-smi answers. Pure; `health.probes` runs it.

Sources: `nvidia-smi --help-query-gpu`; its manual, "Clocks Event Reasons".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from corral.agent.health.gpus import CLOCK_REASONS, LOAD_QUERY, short_bus_id, table

_MIB = 1 << 20
_NUMBER = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLoad:
    """A GPU now; None for what it does not report. Memory in bytes, the clock of its cores in Hz.

    `utilization`: the share of the last second, or less, in which a kernel ran. `slowed_by`: what holds its clocks
    back, by the names of CLOCK_REASONS. Memory errors count since the driver was loaded.
    """

    index: int
    bus_id: str
    utilization: float | None
    memory_used: float | None
    memory_total: float | None
    temperature_c: float | None
    power_w: float | None
    clock_hz: float | None
    slowed_by: frozenset[str]
    corrected: float | None
    uncorrected: float | None


def read_load(text: str) -> tuple[GpuLoad, ...]:
    """The GPUs of `nvidia-smi --query-gpu=... --format=csv`. Raises ValueError for any other text."""
    return tuple(_gpu([row[name] for name in LOAD_QUERY]) for row in table(text, LOAD_QUERY))


def _gpu(cells: Sequence[str]) -> GpuLoad:
    index, bus_id, *others = cells
    utilization, used, total, temperature, power, clock, *rest = others
    reasons, (corrected, uncorrected) = rest[: len(CLOCK_REASONS)], rest[len(CLOCK_REASONS) :]
    return GpuLoad(
        index=int(index),
        bus_id=short_bus_id(bus_id),
        utilization=_scaled(utilization, 0.01),
        memory_used=_scaled(used, _MIB),
        memory_total=_scaled(total, _MIB),
        temperature_c=_scaled(temperature),
        power_w=_scaled(power),
        clock_hz=_scaled(clock, 1e6),
        slowed_by=frozenset(name for name, cell in zip(CLOCK_REASONS, reasons, strict=True) if cell == "Active"),
        corrected=_scaled(corrected),
        uncorrected=_scaled(uncorrected),
    )


def _scaled(cell: str, unit: float = 1) -> float | None:
    """`627.40 W` as a number; None for `[N/A]` and the like."""
    found = _NUMBER.match(cell)
    return float(found[0]) * unit if found else None
