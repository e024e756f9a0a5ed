"""How sure a forecast of speed is: the range that was found on published runs. docs/forecast.md, "How sure is it"."""

from __future__ import annotations

from dataclasses import dataclass

from corral.catalog.accelerators import published_runs
from corral.forecast.training.open_job import OpenJob

_DENSE, _OTHERS = 0.10, 0.30  # of the speed
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
        return Certainty(off=_OTHERS, why="mixtures of experts: overlap, routing and kernels differ more than is known")
    if not accelerator.calibrated or published_runs(accelerator.name) < _FEW:
        return Certainty(off=_OTHERS, why=f"{accelerator.name}: few runs are published, or none")
    if job.seq_len > _LONG:
        return Certainty(off=_OTHERS, why=f"sequences of more than {_LONG:,} tokens: few runs are published")
    if job.nodes > 1 and not job.efa:
        return Certainty(off=_OTHERS, why="no EFA between nodes: no run is published")
    if job.precision.bits > 16 or job.offload_optimizer:
        return Certainty(off=_OTHERS, why="fp32 or offload: no run is published whose columns say so")
    return Certainty(off=_DENSE, why="dense models in layouts like the published ones")
