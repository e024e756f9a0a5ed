"""How long a training step takes, part by part, and what that means: tokens a second, utilisation, what limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import StrEnum

from corral.forecast.training.flops import (
    attention_flops,
    model_flops_per_token,
    recomputed_flops,
    six_n_flops_per_token,
)
from corral.forecast.training.layout import Layout, Recompute, Sharding
from corral.forecast.training.network import Machine
from corral.forecast.training.shape import ModelShape
from corral.forecast.training.traffic import activation_bytes_per_token, score_bytes_per_token, weight_bytes

_HBM_SHARE = 0.85  # of its peak that kernels reach which only move data
_ATTENTION_SHARE = 0.5  # of what large products reach, for the part of attention that is not masked
_SLOWED = 0.2  # of communication that is hidden behind compute: it takes cores and memory bandwidth from that
_SLOWED_DEEPSPEED = 0.5  # the same for DeepSpeed's ZeRO-3 of 2021
_TENSOR_HIDDEN = 0.5  # of tensor communication, by Transformer Engine, which 8-bit products come with
_UNEVEN = 0.6  # of a sequence's causal half, that ranks of PyTorch's ring attention wait for the last one
_STRAGGLER = 0.007  # more time for each doubling of nodes; llm-foundry's and torchtitan's tables have 0.5 to 1.5 %
_STATE_TRAFFIC = 30  # bytes for each parameter that an optimizer step reads and writes: 16 or 18, and all but gradients
_EXPERT_KERNELS_S = 1e-4  # of one local expert in a layer, forward and backward: nine small products that fill no device
_ROUTING_S = 3e-3
_ROUTING_EFA_S = 8e-3
_EXPERT_HIDDEN = 0.5
_EXPERT_SHARE = 0.5
_MOST_CONTEXT_HIDDEN = 0.5  # of ring attention's exchange behind its own compute


class Precision(StrEnum):
    """Numbers that matrix products of layers take; embeddings, output and attention stay in 16 bits."""

    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    FP4 = "fp4"

    @property
    def bits(self) -> int:
        """Their width."""
        return {"fp8": 8, "fp4": 4}.get(self.value, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run: what is trained, how it is laid out, on what. `global_batch` is in sequences.

    `fused_attention`: flash attention, which never writes the scores. `efa`: nodes are joined by it, where libraries
    for mixtures of experts (DeepEP) do not run and every token is sent once for each expert.
    """

    shape: ModelShape
    layout: Layout
    machine: Machine
    seq_len: int
    global_batch: float
    precision: Precision
    fused_attention: bool = True
    efa: bool = False

    @property
    def accelerators(self) -> float:
        """How many it has."""
        return self.layout.accelerators

    @property
    def micro_batches(self) -> int:
        """How many a data-parallel rank does in a step."""
        return self.layout.micro_batches(self.global_batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepParts:
    """Seconds of a step, none of them hidden behind another; their sum is the step.

    `products`: matrix products of layers and output; `attention`: its core; `memory_bound`: what only moves data;
    `tensor`, `context`, `expert`, `pipeline`, `data`: communication that nothing hides.
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
        return sum(getattr(self, field.name) for field in fields(self))

    @property
    def communication(self) -> float:
        """What is spent on communication that nothing hides."""
        return self.tensor + self.context + self.expert + self.pipeline + self.data

    @property
    def limit(self) -> str:
        """The name of the largest part."""
        return max((field.name for field in fields(self)), key=lambda name: float(getattr(self, name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """What a run reaches. `mfu` counts model FLOPs (attention whole), `mfu_6n` six for each active parameter."""

    parts: StepParts
    tokens_per_s: float
    tokens_per_s_per_accelerator: float
    mfu: float
    mfu_6n: float

    @property
    def communication_share(self) -> float:
        """Part of the step that is communication which nothing hides."""
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


def step_parts(job: Job) -> StepParts:
    """Where the time of a step goes.

    A pipeline does m micro-batches and (p-1)/v more in which it fills and drains (Narayanan et al. 2021).
    """
    micro = _MicroBatch(job)
    layout, m = job.layout, job.micro_batches
    layers = job.shape.layers / layout.pp
    head = micro.head_s  # the stage that has the output layer sets the pace
    products = m * (layers * micro.products_s + head)
    attention = m * layers * micro.attention_s
    moved = m * layers * micro.memory_bound_s
    again = m * layers * micro.recompute_s
    tensor = m * layers * micro.tensor_s
    context = m * layers * micro.context_s
    expert = m * layers * micro.expert_s
    rounds = m if layout.pp == 1 else 1  # in a pipeline, layers stay gathered for all micro-batches
    gathering = rounds * layers * micro.gathering_s
    pipeline = m * micro.pipeline_s
    stage = products + attention + moved + again + tensor + context + expert + gathering
    bubble = stage / m * (layout.pp - 1) / layout.virtual_stages
    data = gathering + _reduction_s(job, stage / m)
    optimizer = _optimizer_s(job)
    sum_s = stage - gathering + pipeline + data + bubble + optimizer
    nodes = max(1.0, job.accelerators / min(8, job.machine.per_node))
    return StepParts(
        products=products,
        attention=attention,
        memory_bound=moved,
        recompute=again,
        tensor=tensor,
        context=context,
        expert=expert,
        pipeline=pipeline,
        data=data,
        bubble=bubble,
        optimizer=optimizer,
        stragglers=sum_s * _STRAGGLER * math.log2(nodes),
    )


class _MicroBatch:
    """Seconds that one layer takes for one micro-batch on one accelerator, forward and backward."""

    def __init__(self, job: Job) -> None:
        self._job = job
        layout = job.layout
        self._tokens = job.seq_len / layout.cp * layout.micro_batch
        model = job.machine.accelerator
        self._reached = model.reached_flops(job.precision.bits)
        self._reached_16 = model.reached_flops(16)
        self._hbm = model.hbm_gb_per_s * 1e9 * _HBM_SHARE

    @property
    def products_s(self) -> float:
        shape = self._job.shape
        experts = shape.mlps_in_use * shape.mlp_matmul if shape.is_moe else 0.0
        work = max(0.0, shape.layer_matmul - experts) + min(experts, shape.layer_matmul) / _EXPERT_SHARE
        return 6 * work * self._tokens / self._job.layout.tp / self._reached

    @property
    def attention_s(self) -> float:
        return 3 * self._attention_forward_s

    @property
    def _attention_forward_s(self) -> float:
        job, tp = self._job, self._job.layout.tp
        if job.fused_attention:
            flops = attention_flops(job.shape, job.seq_len, causal=True) * self._tokens / tp
            return flops / (self._reached_16 * _ATTENTION_SHARE) * self._unevenness
        flops = attention_flops(job.shape, job.seq_len) * self._tokens / tp
        moved = score_bytes_per_token(job.shape, job.layout, job.seq_len) * self._tokens
        return flops / self._reached_16 + moved / self._hbm

    @property
    def _unevenness(self) -> float:
        """How much longer the rank with most of a causal sequence takes; Megatron gives each an early and a late part.

        Where nothing is balanced it is 2 - 1/c; torchtitan's runs lie between that and 1.
        """
        layout = self._job.layout
        balanced = layout.sharding in (Sharding.ZERO1, Sharding.ZERO2)
        return 1.0 if balanced else 1 + _UNEVEN * (1 - 1 / layout.cp)

    @property
    def memory_bound_s(self) -> float:
        return (3 * self._moved_forward + self._weights_moved) / self._hbm

    @property
    def _narrow(self) -> bool:
        return self._job.precision.bits < 16

    @property
    def _moved_forward(self) -> float:
        return activation_bytes_per_token(self._job.shape, self._job.layout, narrow=self._narrow) * self._tokens

    @property
    def _weights_moved(self) -> float:
        return weight_bytes(self._job.shape, self._job.layout, narrow=self._narrow)

    @property
    def recompute_s(self) -> float:
        job, again = self._job, self._job.layout.recompute
        forward = self.products_s / 3
        match again:
            case Recompute.NONE:
                return 0.0
            case Recompute.SELECTIVE:  # flash attention does it by itself: it is part of what attention reaches
                return 0.0 if job.fused_attention else self._attention_forward_s
            case Recompute.OPERATORS:
                return forward / 2 + self._moved_forward / 2 / self._hbm
            case Recompute.FULL:
                assert recomputed_flops(job.shape, job.seq_len, again) > 0
                return forward + self._attention_forward_s + self._moved_forward / self._hbm

    @property
    def head_s(self) -> float:
        shape, layout = self._job.shape, self._job.layout
        flops = 6 * shape.embedding * self._tokens / layout.tp
        return flops / self._reached_16 + 24 * shape.vocabulary * self._tokens / layout.tp / self._hbm

    @property
    def tensor_s(self) -> float:
        """Four all-reduces of 2sbh, six with full recomputation (Korthikanti et al.)."""
        layout = self._job.layout
        if layout.tp <= 1:
            return 0.0
        size = 2 * self._tokens * self._job.shape.hidden
        count = 6 if layout.recompute is Recompute.FULL else 4
        hidden = _TENSOR_HIDDEN if self._narrow and not layout.sharding.of_parameters else 0.0
        return count * self._job.machine.tensor_all_reduce_s(size, layout.tp) * (1 - hidden)

    @property
    def context_s(self) -> float:
        """Keys and values go around once forward and twice backward, behind attention as far as that lasts."""
        job, layout = self._job, self._job.layout
        if layout.cp <= 1:
            return 0.0
        size = 4 * self._tokens * job.shape.kv_heads * job.shape.head_dim / layout.tp
        within = layout.tp * layout.cp <= job.machine.accelerator.link_domain
        sent = 3 * (layout.cp - 1) * job.machine.send_s(size, within=within)
        return max(sent * _SLOWED, sent - self.attention_s * _MOST_CONTEXT_HIDDEN)

    @property
    def expert_s(self) -> float:
        """Four all-to-alls of what each token sends to its experts, and the kernels of many small experts."""
        job, layout, shape = self._job, self._job.layout, self._job.shape
        if not shape.is_moe:
            return 0.0
        fixed = _ROUTING_S + (shape.experts / layout.ep) * _EXPERT_KERNELS_S
        if layout.ep <= 1:
            return fixed
        group = job.machine.group(layout.ep, 1)
        size = 2 * self._tokens / layout.tp * shape.hidden
        exchange = 4 * job.machine.all_to_all_s(size, shape.top_k, group, once_a_node=not job.efa)
        seen = (1 - _EXPERT_HIDDEN) * exchange
        return fixed + seen + (_ROUTING_EFA_S if job.efa and group.across > 1 else 0.0)

    @property
    def gathering_s(self) -> float:
        """What ZeRO-3 cannot hide: two gathers and a reduction of the layer against the layer's own work."""
        job, layout = self._job, self._job.layout
        if not layout.sharding.of_parameters or layout.dp <= 1:
            return 0.0
        size = 2 * (job.shape.shared_layer_parameters / layout.tp + job.shape.expert_parameters / layout.ep)
        group = job.machine.group(layout.dp * layout.cp, layout.tp)
        single = layout.sharding is Sharding.DEEPSPEED_ZERO3
        one = (job.machine.single_card_all_gather_s if single else job.machine.all_gather_s)(size, group)
        work = self.products_s + self.attention_s + self.memory_bound_s + self.recompute_s + self.tensor_s
        shorter, longer = sorted((3 * one, work))
        return longer - work + (_SLOWED_DEEPSPEED if single else _SLOWED) * shorter

    @property
    def pipeline_s(self) -> float:
        """2sbh/t to the next stage and back, as often as a stage has parts (Narayanan et al. 2021)."""
        job, layout = self._job, self._job.layout
        if layout.pp <= 1:
            return 0.0
        size = 2 * self._tokens * job.shape.hidden / layout.tp
        within = layout.accelerators <= job.machine.accelerator.link_domain
        seen = 1.0 if layout.virtual_stages == 1 else _SLOWED  # interleaved schedules send while others compute
        return 2 * layout.virtual_stages * seen * job.machine.send_s(size, within=within)


def _reduction_s(job: Job, micro_batch_s: float) -> float:
    """What is left to see of gradients' reduction and weights' gathering: all of it, or what no backward pass hides."""
    layout, shape = job.layout, job.shape
    ranks = layout.dp * layout.cp
    if ranks <= 1 or layout.sharding.of_parameters:
        return 0.0
    group = job.machine.group(ranks, layout.tp)
    shared = (shape.layers * shape.shared_layer_parameters + shape.embedding) / layout.tp / layout.pp
    experts = shape.layers * shape.expert_parameters / layout.ep / layout.pp
    held = shared + experts * min(1.0, layout.tp * ranks / layout.ep / ranks)
    if layout.sharding is Sharding.NONE:
        return job.machine.all_reduce_s(4 * held, group)
    both = job.machine.all_gather_s(4 * held, group) + job.machine.all_gather_s(2 * held, group)
    return max(_SLOWED * both, both - micro_batch_s)


def _optimizer_s(job: Job) -> float:
    layout, shape = job.layout, job.shape
    held = (shape.layers * shape.shared_layer_parameters + 2 * shape.embedding) / layout.tp / layout.pp
    held += shape.layers * shape.expert_parameters / layout.ep / layout.pp
    if layout.sharding.of_optimizer:
        held /= layout.dp * layout.cp
    return held * _STATE_TRAFFIC / (job.machine.accelerator.hbm_gb_per_s * 1e9 * _HBM_SHARE)
