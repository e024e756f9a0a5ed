"""Seconds that an accelerator works, for one layer and one micro-batch unless said otherwise, forward and backward."""

from __future__ import annotations

from corral.catalog.training_constants import training_constants
from corral.forecast.training.flops import attention_flops
from corral.forecast.training.job import Job
from corral.forecast.training.layout import Recompute, Sharding
from corral.forecast.training.traffic import activation_bytes_per_token, score_bytes_per_token, weight_bytes

_GRADIENT = 4  # bytes of one on its way to the host
TRAINING = 3  # forward once, backward twice as much, in FLOPs and in bytes
_LOGIT_TRAFFIC = 24  # bytes of a logit, read and written in fp32 by softmax, loss and their gradient


def products_s(job: Job) -> float:
    """Matrix products: 6 FLOPs for each parameter and token. Those of experts reach a smaller share."""
    shape = job.shape
    experts = min(shape.routed_matmul, shape.layer_matmul)
    work = shape.layer_matmul - experts + experts / training_constants().expert_share
    return 2 * TRAINING * work * job.tokens / job.layout.tp / job.product_flops


def attention_s(job: Job) -> float:
    """The core of attention."""
    return TRAINING * _attention_forward_s(job)


def memory_bound_s(job: Job) -> float:
    """What only moves data: norms, sums, activations, weights and their gradients."""
    moved = TRAINING * _moved_forward(job) + weight_bytes(
        job.shape, job.layout, size=job.number_bytes, narrow=job.narrow
    )
    return moved / memory_rate(job)


def recompute_s(job: Job) -> float:
    """What is done a second time."""
    forward = products_s(job) / TRAINING
    moved = _moved_forward(job) / memory_rate(job)
    match job.layout.recompute:
        case Recompute.NONE:
            return 0.0
        case Recompute.SELECTIVE:  # flash attention does it by itself: it is part of what attention reaches
            return 0.0 if job.fused_attention else _attention_forward_s(job)
        case Recompute.OPERATORS:
            return (forward + moved) / 2
        case Recompute.FULL:
            return forward + _attention_forward_s(job) + moved


def head_s(job: Job) -> float:
    """The output layer and the loss of one micro-batch, on the last stage; always in 16 bits."""
    return head_flops(job) / job.wide_flops + head_bytes(job) / memory_rate(job)


def head_flops(job: Job) -> float:
    """FLOPs of that."""
    return 2 * TRAINING * job.shape.embedding * job.tokens / job.layout.tp


def head_bytes(job: Job) -> float:
    """Bytes that its logits move."""
    return _LOGIT_TRAFFIC * job.shape.vocabulary * job.tokens / job.layout.tp


def optimizer_s(job: Job) -> float:
    """The optimizer's pass over the parameters of a rank, once a step.

    Where the host does it, gradients go there and weights come back, and its memory is what limits it (ZeRO-Offload,
    arXiv:2101.06840, which hides neither from a step that is all on the accelerator).
    """
    layout, shape = job.layout, job.shape
    shared = (shape.layers * shape.shared_layer_parameters + 2 * shape.embedding) / layout.tp / layout.pp
    experts = shape.layers * shape.expert_parameters / layout.expert_ranks / layout.pp
    if layout.sharding.of_optimizer:
        shared, experts = shared / layout.dp / layout.cp, experts / layout.expert_copies
    parameters, constants = shared + experts, training_constants()
    if not job.offload_optimizer:
        return parameters * constants.state_traffic / memory_rate(job)
    moved = parameters * (_GRADIENT + job.number_bytes) / constants.host_link_bytes_per_s
    return moved + parameters * constants.state_traffic / constants.host_memory_bytes_per_s


def memory_rate(job: Job) -> float:
    """Bytes a second that kernels move which do nothing else."""
    return job.machine.accelerator.hbm_gb_per_s * 1e9 * training_constants().hbm_share


def _moved_forward(job: Job) -> float:
    return activation_bytes_per_token(job.shape, job.layout, size=job.number_bytes, narrow=job.narrow) * job.tokens


def _attention_forward_s(job: Job) -> float:
    """Flash attention does the half that is not masked; without it, all scores are computed, written and read."""
    tp = job.layout.tp
    flops = attention_flops(job.shape, job.seq_len, causal=job.fused_attention) * job.tokens / tp
    if job.fused_attention:
        return flops / job.attention_flops * _unevenness(job)
    moved = score_bytes_per_token(job.shape, job.layout, job.seq_len) * job.tokens
    return flops / job.wide_flops + moved / memory_rate(job)


def _unevenness(job: Job) -> float:
    """How much longer the rank with most of a causal sequence takes; Megatron gives each an early and a late part.

    Where nothing is balanced it is 2 - 1/c; torchtitan's runs lie between that and 1.
    """
    balanced = job.layout.sharding in (Sharding.ZERO1, Sharding.ZERO2)
    return 1.0 if balanced else 1 + training_constants().uneven * (1 - 1 / job.layout.cp)
