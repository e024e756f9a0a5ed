"""The roofline of a run: whether compute or memory limits each kind of work, at reached rates and at the peak.

Williams, Waterman and Patterson, "Roofline" (CACM 52, 2009): work of I FLOPs per byte of memory traffic reaches
min(compute, I x bandwidth). FLOPs, bytes and seconds are those of the speed forecast (`compute`, `memory_traffic`), per
layer and micro-batch of a rank, forward and backward.
"""

from __future__ import annotations

from dataclasses import dataclass

from corral.catalog.accelerators.training_constants import training_constants
from corral.forecast.training.compute import (
    TRAINING,
    attention_s,
    head_bytes,
    head_flops,
    head_s,
    memory_bound_s,
    memory_rate,
    products_s,
)
from corral.forecast.training.flops import attention_flops
from corral.forecast.training.job import Job
from corral.forecast.training.memory_traffic import (
    SUM_NUMBERS,
    attention_numbers,
    product_numbers,
    score_bytes_per_token,
    weight_bytes,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A kind of work: its FLOPs, memory traffic, and time in the forecast."""

    name: str
    flops: float
    bytes: float
    seconds: float

    @property
    def intensity(self) -> float:
        """FLOPs per byte."""
        return self.flops / self.bytes

    @property
    def flops_per_s(self) -> float:
        """FLOP/s in the forecast."""
        return self.flops / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """An accelerator's roofs in FLOP/s and bytes/s, at the peak and as reached, and the kinds of work below them."""

    peak_flops: float
    reached_flops: float
    peak_bytes_per_s: float
    reached_bytes_per_s: float
    works: tuple[Work, ...]

    @property
    def ridge(self) -> float:
        """The intensity at which the reached roofs meet: below it memory limits, above it compute."""
        return self.reached_flops / self.reached_bytes_per_s

    def bound(self, work: Work) -> str:
        """`compute` or `memory`."""
        return "compute" if work.intensity >= self.ridge else "memory"

    def roof(self, intensity: float) -> float:
        """The maximum FLOP/s at this intensity."""
        return min(self.reached_flops, intensity * self.reached_bytes_per_s)


def roofline(job: Job) -> Roofline:
    """The roofline of this run, in the number format of its products."""
    accelerator = job.machine.accelerator
    return Roofline(
        peak_flops=accelerator.peak_flops(job.precision.bits),
        reached_flops=job.product_flops,
        peak_bytes_per_s=accelerator.hbm_gb_per_s * 1e9,
        reached_bytes_per_s=memory_rate(job),
        works=(_products(job), _attention(job), _output(job), _sums(job), _layer(job)),
    )


def _products(job: Job) -> Work:
    """Their weights are read three times, and gradients added up in fp32 (`memory_traffic.weight_bytes`)."""
    moved = TRAINING * product_numbers(job.shape) * job.number_bytes * job.tokens / job.layout.tp
    weights = weight_bytes(job.shape, job.layout, size=job.number_bytes, narrow=job.narrow)
    return Work(
        name="matrix products",
        flops=2 * TRAINING * job.shape.layer_matmul * job.tokens / job.layout.tp,
        bytes=moved + weights / training_constants().products_traffic_seen,
        seconds=products_s(job),
    )


def _attention(job: Job) -> Work:
    """Fused attention never moves its scores; the speed forecast counts its traffic as memory-bound work."""
    numbers = attention_numbers(job.shape) * job.number_bytes / job.layout.tp
    scores = 0.0 if job.fused_attention else score_bytes_per_token(job.shape, job.layout, job.seq_len)
    flops = attention_flops(job.shape, job.seq_len, causal=job.fused_attention)
    return Work(
        name="attention",
        flops=TRAINING * flops * job.tokens / job.layout.tp,
        bytes=TRAINING * (numbers + scores) * job.tokens,
        seconds=attention_s(job),
    )


def _output(job: Job) -> Work:
    return Work(name="output and loss", flops=head_flops(job), bytes=head_bytes(job), seconds=head_s(job))


def _sums(job: Job) -> Work:
    """The two residual sums of a layer, the simplest elementwise work: 1 FLOP per three numbers."""
    numbers = 2 * job.shape.hidden * job.tokens / (job.layout.tp if job.layout.sequence_parallel else 1)
    moved = TRAINING * numbers * SUM_NUMBERS * job.number_bytes
    return Work(name="residual sums", flops=TRAINING * numbers, bytes=moved, seconds=moved / memory_rate(job))


def _layer(job: Job) -> Work:
    """A whole layer: products, attention and memory-bound work."""
    products, attention = _products(job), _attention(job)
    moving = memory_bound_s(job)
    return Work(
        name="a whole layer",
        flops=products.flops + attention.flops,
        bytes=moving * memory_rate(job) + products.bytes * (1 - training_constants().products_traffic_seen),
        seconds=products.seconds + attention.seconds + moving,
    )
