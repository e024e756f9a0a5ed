"""The roofline of a run: what limits each kind of its work, compute or memory, by what is reached and by the peak.

Williams, Waterman and Patterson, "Roofline" (CACM 52, 2009): work of I FLOPs for each byte that it moves to and from
memory reaches min(compute, I x bandwidth). Of each kind of work here, FLOPs, bytes and seconds are those of the
forecast of speed (`compute`, `traffic`): of one layer and micro-batch of a rank, forward and backward.
"""

from __future__ import annotations

from dataclasses import dataclass

from corral.catalog.training_constants import training_constants
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
from corral.forecast.training.traffic import (
    SUM_NUMBERS,
    attention_numbers,
    product_numbers,
    score_bytes_per_token,
    weight_bytes,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One kind of work: how much it computes and moves, and how long the forecast has it take."""

    name: str
    flops: float
    bytes: float
    seconds: float

    @property
    def intensity(self) -> float:
        """FLOPs for each byte."""
        return self.flops / self.bytes

    @property
    def flops_per_s(self) -> float:
        """What it reaches."""
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
        """FLOP/s that work of this intensity reaches at most."""
        return min(self.reached_flops, intensity * self.reached_bytes_per_s)


def roofline(job: Job) -> Roofline:
    """The roofline of this run, with the numbers that its products take."""
    accelerator = job.machine.accelerator
    return Roofline(
        peak_flops=accelerator.peak_flops(job.precision.bits),
        reached_flops=job.product_flops,
        peak_bytes_per_s=accelerator.hbm_gb_per_s * 1e9,
        reached_bytes_per_s=memory_rate(job),
        works=(_products(job), _attention(job), _output(job), _sums(job), _layer(job)),
    )


def _products(job: Job) -> Work:
    """Their weights are read three times, and gradients added up in fp32 (`traffic.weight_bytes`)."""
    moved = TRAINING * product_numbers(job.shape) * job.number_bytes * job.tokens / job.layout.tp
    weights = weight_bytes(job.shape, job.layout, size=job.number_bytes, narrow=job.narrow)
    return Work(
        name="matrix products",
        flops=2 * TRAINING * job.shape.layer_matmul * job.tokens / job.layout.tp,
        bytes=moved + weights / training_constants().products_traffic_seen,
        seconds=products_s(job),
    )


def _attention(job: Job) -> Work:
    """Fused attention never moves its scores; what it moves is counted there with what only moves data."""
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
    """The two residual sums of a layer, the simplest of what works on each number alone: 1 FLOP, three numbers."""
    numbers = 2 * job.shape.hidden * job.tokens / (job.layout.tp if job.layout.sequence_parallel else 1)
    moved = TRAINING * numbers * SUM_NUMBERS * job.number_bytes
    return Work(name="residual sums", flops=TRAINING * numbers, bytes=moved, seconds=moved / memory_rate(job))


def _layer(job: Job) -> Work:
    """All of a layer: its products and attention, and the time in which it only moves data."""
    products, attention = _products(job), _attention(job)
    moving = memory_bound_s(job)
    return Work(
        name="a whole layer",
        flops=products.flops + attention.flops,
        bytes=moving * memory_rate(job) + products.bytes * (1 - training_constants().products_traffic_seen),
        seconds=products.seconds + attention.seconds + moving,
    )
