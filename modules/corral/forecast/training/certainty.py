"""How sure a forecast of speed is: the range that was found on published runs. docs/forecast.md, "How sure is it"."""

from __future__ import annotations

from dataclasses import dataclass

from corral.catalog.accelerators import published_runs
from corral.forecast.training.open_job import OpenJob

# Of the speed. Of the runs that were held out 84 % of the dense ones were within it, 79 % of the mixtures, and all
# dense ones of accelerators with few rows.
_DENSE, _MIXTURES, _OTHERS = 0.15, 0.40, 0.30
_LONG = 32_768  # tokens of a sequence; the rows with more are few, and half of them are far off
_FEW = 3  # runs of an accelerator: with fewer, its constants are theirs


@dataclass(frozen=True, slots=True, kw_only=True)
class Certainty:
    """By how much the speed may be off, up or down, as a part of it, and why so much."""

    off: float
    why: str


def certainty_of(job: OpenJob) -> Certainty:
    """How sure the speed of this job is, whatever its layout."""
    accelerator = job.machine.accelerator
    if job.shape.is_moe:
        return Certainty(off=_MIXTURES, why="four of five published runs of mixtures of experts were within it")
    if not accelerator.calibrated or published_runs(accelerator.name, min(16, job.precision.bits)) < _FEW:
        return Certainty(off=_OTHERS, why=f"{accelerator.name}: few runs like it are published, or none")
    if job.seq_len > _LONG:
        return Certainty(off=_OTHERS, why=f"sequences of more than {_LONG:,} tokens: few runs are published")
    if job.nodes > 1 and not job.efa:
        return Certainty(off=_OTHERS, why="no EFA between nodes: no run is published")
    if job.precision.bits > 16 or job.offload_optimizer:
        return Certainty(off=_OTHERS, why="fp32 or offload: no run is published whose columns say so")
    return Certainty(off=_DENSE, why="five of six published runs of dense models were within it")
