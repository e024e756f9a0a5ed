"""A job without its layout: what is trained on what, and which layouts are possible at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from corral.catalog.models import stage_layers
from corral.catalog.transformer import TransformerModel
from corral.forecast.training.fit import job_memory
from corral.forecast.training.job import Job, Precision
from corral.forecast.training.layout import Layout, Recompute, Sharding
from corral.forecast.training.memory import GIB, Memory
from corral.forecast.training.network import Machine
from corral.forecast.training.state import usual_state

_MOST_MICRO_BATCH = 16  # sequences; more than any published run of several gave to one accelerator
_LARGEST_MICRO_BATCH = 64  # sequences; beyond that nothing is gained
_LEAST_CONTEXT = 4096  # tokens of a sequence on one rank; no published run of training_runs.csv had fewer
_MOST_TENSOR = 16  # ranks; no published run of a rack-scale domain had more
# Selective recomputation is what flash attention does anyway, so that it is none.
RECOMPUTES = (Recompute.NONE, Recompute.OPERATORS, Recompute.FULL)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenJob:
    """A job whose layout is open. `per_node` accelerators of a node, `host_gib` of its memory for each of them."""

    shape: TransformerModel
    machine: Machine
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
        """How many there are."""
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
        """What it needs in this layout, with the state that today's software keeps."""
        return job_memory(self.laid_out(layout), usual_state(self.precision, layout.sharding))

    def missing_gib(self, memory: Memory) -> float:
        """GiB that the accelerator or its host lacks for this; 0 where it fits."""
        device = memory.total_gib - self.machine.accelerator.memory_gib
        return max(0.0, device, memory.host / GIB - self.host_gib)


def meshes(job: OpenJob) -> Iterator[Layout]:
    """Every division of the accelerators with whole parts, one sequence at a time, everything computed again.

    These are the layouts of their kind that need the least memory. ZeRO-2 is for a single micro-batch in a step: with
    more its gradients are reduced for each of them, which the parts of a step do not have.
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
    """The micro-batches, recomputations and virtual stages that are possible with this division.

    A micro-batch divides what a rank has, and fits if everything is computed again, as one sequence is known to;
    interleaving takes micro-batches in groups as large as the pipeline.
    """
    local = job.global_batch // int(mesh.dp)
    layers = stage_layers(job.shape.layers, mesh.pp) or 1
    for size in _divisors(local, _MOST_MICRO_BATCH):
        count = local // size
        if mesh.sharding is Sharding.ZERO2 and count > 1:
            continue
        if size > 1 and job.missing_gib(job.memory(replace(mesh, micro_batch=size))) > 0:
            return  # larger ones need more
        parts = _divisors(layers, layers) if mesh.pp > 1 and count % mesh.pp == 0 else [1]
        for recompute, virtual in product(RECOMPUTES, parts):
            yield size, recompute, virtual


def largest_micro_batch(job: OpenJob, layout: Layout) -> int | None:
    """The largest that divides what a rank has and fits; None where not even a single sequence does."""
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
        for tp in _divisors(job.accelerators, min(domain, _MOST_TENSOR))
        if shape.heads % tp == 0 and (shape.kv_heads % tp == 0 or tp % shape.kv_heads == 0)
    ]


def _pipeline(job: OpenJob) -> list[int]:
    most = job.shape.layers
    return [pp for pp in _divisors(job.accelerators, most) if stage_layers(most, pp) is not None]


def _context(job: OpenJob) -> list[int]:
    """A rank has an early and a late part of a sequence, so that all have as much to do."""
    most = max(1, job.seq_len // _LEAST_CONTEXT)
    return [cp for cp in _divisors(job.accelerators, most) if cp == 1 or job.seq_len % (2 * cp) == 0]


def _expert(job: OpenJob, ranks: int) -> list[int]:
    if not job.shape.is_moe:
        return [1]
    return [ep for ep in _divisors(job.shape.experts, job.shape.experts) if ranks % ep == 0]


def _shardings(job: OpenJob, dp: int, cp: int) -> tuple[Sharding, ...]:
    """ZeRO-1 is better than none wherever there is somebody to share with: less memory, less to send, and hidden."""
    if dp * cp == 1:
        return (Sharding.NONE,)
    few = job.global_batch // dp <= _MOST_MICRO_BATCH
    return (Sharding.ZERO1, Sharding.ZERO2, Sharding.ZERO3) if few else (Sharding.ZERO1, Sharding.ZERO3)


def _divisors(number: int, most: int) -> list[int]:
    return [part for part in range(1, min(number, most) + 1) if number % part == 0]
