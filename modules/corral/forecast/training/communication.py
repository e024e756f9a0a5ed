"""Seconds of exposed communication by kind, per layer and micro-batch unless stated otherwise."""

from __future__ import annotations

from corral.catalog.accelerators.training_constants import training_constants
from corral.forecast.training.compute import attention_s, memory_bound_s, products_s, recompute_s
from corral.forecast.training.job import Job
from corral.forecast.training.layout import Recompute, Sharding

_FULL = 4  # bytes of a gradient, which is reduced in fp32


def tensor_s(job: Job) -> float:
    """Four all-reduces of 2sbh, six with full recomputation; with sequence parallelism as much (Korthikanti et al.)."""
    layout = job.layout
    if layout.tp <= 1:
        return 0.0
    count = 6 if layout.recompute is Recompute.FULL else 4
    hides = job.narrow and not layout.sharding.of_parameters
    hidden = training_constants().tensor_hidden if hides else 0.0
    return (
        count
        * job.machine.tensor_all_reduce_s(job.number_bytes * job.tokens * job.shape.hidden, layout.tp)
        * (1 - hidden)
    )


def context_s(job: Job) -> float:
    """Ring exchange of keys and values, once forward and twice backward, hidden behind attention where possible."""
    layout, constants = job.layout, training_constants()
    if layout.cp <= 1:
        return 0.0
    size = job.number_bytes * job.tokens * job.shape.key_value_width / layout.tp
    within = layout.tp * layout.cp <= job.machine.accelerator.link_domain
    sent = 3 * (layout.cp - 1) * job.machine.send_s(size, within=within)
    return max(sent * constants.slowed, sent - attention_s(job) * constants.context_hidden)


def expert_s(job: Job) -> float:
    """Four all-to-alls of tokens to experts, the routing, and the launches of many small products."""
    layout, shape, constants = job.layout, job.shape, training_constants()
    if not shape.is_moe:
        return 0.0
    fixed = constants.routing_s + shape.experts / layout.ep * constants.expert_kernels_s
    if layout.ep <= 1:
        return fixed
    group = job.machine.group(layout.ep, 1)
    size = job.number_bytes * job.tokens / layout.tp * shape.hidden
    exchange = 4 * job.machine.all_to_all_s(size, shape.top_k, group, once_a_node=not job.efa)
    if job.efa and job.experts_span_nodes:
        hidden = {None: constants.expert_hidden_efa, True: constants.expert_overlapped_efa, False: 0.0}
        return fixed + (constants.routing_efa_s + exchange) * (1 - hidden[job.expert_overlap])
    return fixed + exchange * (1 - constants.expert_hidden)


def gathering_s(job: Job) -> float:
    """The exposed part of ZeRO-3's two gathers and one reduction per layer, behind the layer's work."""
    layout, constants = job.layout, training_constants()
    if not layout.sharding.of_parameters or layout.dp <= 1:
        return 0.0
    experts = job.shape.expert_parameters / layout.expert_ranks
    size = job.number_bytes * (job.shape.shared_layer_parameters / layout.tp + experts)
    group = job.machine.group(layout.dp * layout.cp, layout.tp)
    deepspeed = layout.sharding is Sharding.DEEPSPEED_ZERO3
    gather = job.machine.single_card_all_gather_s if deepspeed else job.machine.all_gather_s
    exchange = 3 * gather(size, group)
    work = products_s(job) + attention_s(job) + memory_bound_s(job) + recompute_s(job) + tensor_s(job)
    slowed = constants.slowed_deepspeed if deepspeed else constants.slowed
    return max(exchange - work, 0.0) + slowed * min(exchange, work)


def pipeline_s(job: Job) -> float:
    """Per stage: 2sbh/t to the next stage and back for each virtual stage (Narayanan et al. 2021).

    Interleaved schedules send while they compute.
    """
    layout = job.layout
    if layout.pp <= 1:
        return 0.0
    size = job.number_bytes * job.tokens * job.shape.hidden / layout.tp
    within = layout.accelerators <= job.machine.accelerator.link_domain
    seen = 1.0 if layout.virtual_stages == 1 else training_constants().slowed
    return 2 * layout.virtual_stages * seen * job.machine.send_s(size, within=within)


def reduction_s(job: Job, micro_batch_s: float) -> float:
    """Per step: the reduction of gradients, and the gather of weights if the optimizer is sharded.

    Without sharding (Megatron of 2021) it is fully exposed; otherwise the work of one micro-batch hides it.
    """
    layout, shape = job.layout, job.shape
    if layout.sharding.of_parameters:
        return 0.0
    shared = _shared_parameters(job)
    experts = shape.layers * shape.expert_parameters / layout.expert_ranks / layout.pp
    sent = _reduced_s(job, shared, layout.dp * layout.cp, layout.tp)
    sent += _reduced_s(job, experts, layout.expert_copies, layout.expert_ranks)
    if layout.sharding is Sharding.NONE:
        return sent
    return max(training_constants().slowed * sent, sent - micro_batch_s)


def gradient_bytes(job: Job) -> float:
    """Bytes that a rank reduces with its data and context ranks per step: fp32 gradients without experts."""
    return _FULL * _shared_parameters(job)


def _shared_parameters(job: Job) -> float:
    """The parameters of a rank without experts, for an average stage."""
    shape, layout = job.shape, job.layout
    return (shape.layers * shape.shared_layer_parameters + shape.embeddings) / layout.tp / layout.pp


def _reduced_s(job: Job, parameters: float, ranks: float, stride: float) -> float:
    """An all-reduce of fp32 gradients; with a sharded optimizer a reduce-scatter, and a gather of 16-bit weights."""
    if ranks <= 1 or parameters <= 0:
        return 0.0
    group, machine = job.machine.group(ranks, stride), job.machine
    if job.layout.sharding is Sharding.NONE:
        return machine.all_reduce_s(_FULL * parameters, group)
    return machine.all_gather_s(_FULL * parameters, group) + machine.all_gather_s(job.number_bytes * parameters, group)
