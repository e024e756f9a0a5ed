"""The time of a training step by parts, and the resulting speed: tokens per second, utilisation, limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from corral.catalog.accelerators.training_constants import training_constants
from corral.forecast.training.communication import context_s, expert_s, gathering_s, pipeline_s, reduction_s, tensor_s
from corral.forecast.training.compute import (
    attention_s,
    head_s,
    memory_bound_s,
    optimizer_s,
    products_s,
    recompute_s,
)
from corral.forecast.training.flops import model_flops_per_token, six_n_flops_per_token
from corral.forecast.training.job import Job

_NODE = 8  # accelerators of a node if the link domain is a rack or pod


@dataclass(frozen=True, slots=True, kw_only=True)
class StepParts:
    """Seconds of a step by parts without overlap; their sum is the step.

    `products`: matrix products of layers and output. `attention`: its core. `memory_bound`: pure data movement.
    `tensor`, `context`, `expert`, `pipeline`, `data`: exposed communication.
    """

    products: float
    attention: float
    memory_bound: float
    recompute: float
    tensor: float
    context: float
    expert: float
    pipeline: float
    data: float
    bubble: float
    optimizer: float
    stragglers: float

    @property
    def total(self) -> float:
        """The whole step."""
        return math.fsum(getattr(self, field.name) for field in fields(self))

    @property
    def communication(self) -> float:
        """Exposed communication."""
        return self.tensor + self.context + self.expert + self.pipeline + self.data

    @property
    def limit(self) -> str:
        """The name of the largest part."""
        return max((field.name for field in fields(self)), key=lambda name: float(getattr(self, name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """The speed of a run. `mfu` counts model FLOPs (full attention), `mfu_6n` six per active parameter.

    Both are relative to the 16-bit peak, as published ones are.
    """

    parts: StepParts
    tokens_per_s: float
    tokens_per_s_per_accelerator: float
    mfu: float
    mfu_6n: float

    @property
    def communication_share(self) -> float:
        """The share of exposed communication in the step."""
        return self.parts.communication / self.parts.total


def forecast_speed(job: Job) -> Speed:
    """The speed of the run."""
    parts = step_parts(job)
    tokens = job.global_batch * job.seq_len / parts.total
    each = tokens / job.accelerators
    peak = job.machine.accelerator.peak_flops(16)
    return Speed(
        parts=parts,
        tokens_per_s=tokens,
        tokens_per_s_per_accelerator=each,
        mfu=each * model_flops_per_token(job.shape, job.seq_len) / peak,
        mfu_6n=each * six_n_flops_per_token(job.shape) / peak,
    )


def accelerator_hours(speed: Speed, tokens: float, *, effective: float = 1.0) -> float:
    """Accelerator hours for so many tokens. `effective`: the share of time in which the job trains.

    The rest is interruptions, checkpoints and restarts; Llama 3 and MegaScale reached more than 0.9.
    """
    return tokens / speed.tokens_per_s_per_accelerator / 3600 / effective


def parallel_efficiency(alone: Speed, many: Speed) -> float:
    """T1 / (n Tn): the speed per accelerator on many nodes relative to few."""
    return many.tokens_per_s_per_accelerator / alone.tokens_per_s_per_accelerator


def step_parts(job: Job) -> StepParts:
    """The parts of a step.

    A pipeline takes m micro-batches plus (p-1)/v to fill and drain (Narayanan et al. 2021), at the pace of the last
    stage, which has the output layer.
    """
    layout, m = job.layout, job.micro_batches
    work = m * job.shape.layers / layout.pp
    products = work * products_s(job) + m * head_s(job)
    attention, moved, again = work * attention_s(job), work * memory_bound_s(job), work * recompute_s(job)
    tensor, context, expert = work * tensor_s(job), work * context_s(job), work * expert_s(job)
    # in a pipeline, layers stay gathered for all micro-batches of a step
    gathering = gathering_s(job) * (work if layout.pp == 1 else work / m)
    stage = products + attention + moved + again + tensor + context + expert
    parts = StepParts(
        products=products,
        attention=attention,
        memory_bound=moved,
        recompute=again,
        tensor=tensor,
        context=context,
        expert=expert,
        pipeline=m * pipeline_s(job),
        data=gathering + reduction_s(job, stage / m),
        bubble=bubble_s(stage, m, layout.pp, layout.virtual_stages),
        optimizer=optimizer_s(job),
        stragglers=0.0,
    )
    return _with_stragglers(job, parts)


def bubble_s(stage_s: float, micro_batches: int, stages: int, virtual_stages: int) -> float:
    """Seconds in which a pipeline fills and drains: (p-1)/(v m) of its work (Narayanan et al. 2021)."""
    return stage_s * (stages - 1) / (virtual_stages * micro_batches)


def straggling(job: Job) -> float:
    """The slowdown of a step because one of many nodes is always slow."""
    nodes = max(1.0, job.accelerators / min(_NODE, job.machine.accelerator.link_domain))
    return 1 + training_constants().straggler * math.log2(nodes)


def _with_stragglers(job: Job, parts: StepParts) -> StepParts:
    seconds = {field.name: getattr(parts, field.name) for field in fields(parts)}
    return StepParts(**{**seconds, "stragglers": parts.total * (straggling(job) - 1)})
