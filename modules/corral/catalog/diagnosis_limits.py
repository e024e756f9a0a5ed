"""Limits of `corral diagnose`, with their sources. `report.diagnosis` compares a job with them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

from corral.catalog.loader.data_files import read_toml


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisLimits:
    """The limits: shares of a step or of the time, ratios, seconds. data/diagnosis.toml has the source of each."""

    fewest_lines: float
    data_share: float
    communication_share: float
    communication_over_forecast: float
    straggler_ratio: float
    memory_share: float
    memory_retries_per_step: float
    throttled_share: float
    throttled_samples: float
    fewest_samples: float
    gpu_utilization: float
    unused_gpu: float
    checkpoint_share: float
    checkpoint_observed_s: float
    fewest_checkpoints: float
    write_s: float
    slow_file_data_share: float


@cache
def diagnosis_limits() -> DiagnosisLimits:
    """Return the limits."""
    content = read_toml("diagnosis.toml")
    return DiagnosisLimits(**{field.name: float(content[field.name]["value"]) for field in fields(DiagnosisLimits)})
