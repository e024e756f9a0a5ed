"""A job with an open layout, and its possible layouts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from corral.catalog.accelerators.transformer import TransformerModel
from corral.catalog.accelerators.transformer_models import stage_layers
from corral.forecast.training.fit import job_memory
from corral.forecast.training.interconnect import AcceleratorLinks
from corral.forecast.training.job import Job, Precision
from corral.forecast.training.layout import Layout, Recompute, Sharding
from corral.forecast.training.memory import GIB, Memory
from corral.forecast.training.optimizer_state import usual_state

_MAX_MICRO_BATCH = 16  # sequences; above any published run on several accelerators
_LARGEST_MICRO_BATCH = 64  # sequences; larger ones are no faster
_MIN_CONTEXT = 4096  # tokens of a sequence per rank; the minimum in training_runs.csv
_MAX_TENSOR = 16  # ranks; the maximum of published runs on rack-scale domains
# Without SELECTIVE, which flash attention does anyway.
RECOMPUTES = (Recompute.NONE, Recompute.OPERATORS, Recompute.FULL)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenJob:
    """A job with an open layout. `per_node`: accelerators per node. `host_gib`: host memory per accelerator."""

    shape: TransformerModel
    machine: AcceleratorLinks
    nodes: int
    per_node: int
    host_gib: float
    seq_len: int
    global_batch: int
    precision: Precision
    efa: bool = True
    offload_optimizer: bool = False

    @property
    def accelerators(self) -> int:
        """The number of accelerators."""
        return self.nodes * self.per_node

    def laid_out(self, layout: Layout) -> Job:
        """The job in this layout."""
        return Job(
            shape=self.shape,
            layout=layout,
            machine=self.machine,
            seq_len=self.seq_len,
            global_batch=self.global_batch,
            precision=self.precision,
            efa=self.efa,
            offload_optimizer=self.offload_optimizer,
        )

    def memory(self, layout: Layout) -> Memory:
        """The memory in this layout, with the state of current software."""
        return job_memory(self.laid_out(layout), usual_state(self.precision, layout.sharding))

    def missing_gib(self, memory: Memory) -> float:
        """GiB that the accelerator or its host lacks; 0 if it fits."""
        device = memory.total_gib - self.machine.accelerator.memory_gib
        return max(0.0, device, memory.host / GIB - self.host_gib)


def meshes(job: OpenJob) -> Iterator[Layout]:
    """Every integer division of the accelerators, with micro-batches of one sequence and full recomputation.

    These layouts need the least memory of their mesh. ZeRO-2 only with a single micro-batch per step: with more, its
    gradients are reduced for each, which the step model lacks.
    """
    for tp, pp, cp in product(_tensor(job), _pipeline(job), _context(job)):
        if job.accelerators % (tp * pp * cp):
            continue
        dp = job.accelerators // (tp * pp * cp)
        if job.global_batch % dp:
            continue
        for ep, sharding in product(_expert(job, tp * cp * dp), _shardings(job, dp, cp)):
            yield Layout(
                tp=tp,
                pp=pp,
                cp=cp,
                ep=ep,
                dp=dp,
                sharding=sharding,
                recompute=Recompute.FULL,
                sequence_parallel=tp > 1,
            )


def variants(job: OpenJob, mesh: Layout) -> Iterator[tuple[int, Recompute, int]]:
    """The possible micro-batches, recomputation modes and virtual stages of this mesh.

    A micro-batch divides the sequences of a rank and fits with full recomputation, as a single sequence does.
    Interleaving needs micro-batches in multiples of the pipeline's size.
    """
    local = job.global_batch // int(mesh.dp)
    layers = stage_layers(job.shape.layers, mesh.pp) or 1
    for size in _divisors(local, _MAX_MICRO_BATCH):
        count = local // size
        if mesh.sharding is Sharding.ZERO2 and count > 1:
            continue
        if size > 1 and job.missing_gib(job.memory(replace(mesh, micro_batch=size))) > 0:
            return  # larger ones need more
        parts = _divisors(layers, layers) if mesh.pp > 1 and count % mesh.pp == 0 else [1]
        for recompute, virtual in product(RECOMPUTES, parts):
            yield size, recompute, virtual


def largest_dividing_micro_batch(job: OpenJob, layout: Layout) -> int | None:
    """The largest micro-batch that divides the sequences of a rank and fits; None if not even one sequence does."""
    local = job.global_batch // int(layout.dp)
    fitting = [
        size
        for size in _divisors(local, _LARGEST_MICRO_BATCH)
        if job.missing_gib(job.memory(replace(layout, micro_batch=size))) <= 0
    ]
    return max(fitting, default=None)


def _tensor(job: OpenJob) -> list[int]:
    shape, domain = job.shape, int(min(job.machine.accelerator.link_domain, job.accelerators))
    return [
        tp
        for tp in _divisors(job.accelerators, min(domain, _MAX_TENSOR))
        if shape.heads % tp == 0 and (shape.kv_heads % tp == 0 or tp % shape.kv_heads == 0)
    ]


def _pipeline(job: OpenJob) -> list[int]:
    most = job.shape.layers
    return [pp for pp in _divisors(job.accelerators, most) if stage_layers(most, pp) is not None]


def _context(job: OpenJob) -> list[int]:
    """Each rank has an early and a late part of a sequence, for balance."""
    most = max(1, job.seq_len // _MIN_CONTEXT)
    return [cp for cp in _divisors(job.accelerators, most) if cp == 1 or job.seq_len % (2 * cp) == 0]


def _expert(job: OpenJob, ranks: int) -> list[int]:
    if not job.shape.is_moe:
        return [1]
    return [ep for ep in _divisors(job.shape.experts, job.shape.experts) if ranks % ep == 0]


def _shardings(job: OpenJob, dp: int, cp: int) -> tuple[Sharding, ...]:
    """ZeRO-1 is always better than no sharding: less memory, less traffic, and hidden."""
    if dp * cp == 1:
        return (Sharding.NONE,)
    few = job.global_batch // dp <= _MAX_MICRO_BATCH
    return (Sharding.ZERO1, Sharding.ZERO2, Sharding.ZERO3) if few else (Sharding.ZERO1, Sharding.ZERO3)


def _divisors(number: int, most: int) -> list[int]:
    return [part for part in range(1, min(number, most) + 1) if number % part == 0]
