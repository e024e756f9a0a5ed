"""Seconds of computing, forward and backward, per layer and micro-batch unless stated otherwise."""

from __future__ import annotations

from corral.catalog.accelerators.training_constants import training_constants
from corral.forecast.training.flops import attention_flops
from corral.forecast.training.job import Job
from corral.forecast.training.layout import Recompute, Sharding
from corral.forecast.training.memory_traffic import activation_bytes_per_token, score_bytes_per_token, weight_bytes

_GRADIENT = 4  # bytes of one on its way to the host
TRAINING = 3  # forward once, backward twice as much, in FLOPs and in bytes
_LOGIT_TRAFFIC = 24  # bytes of a logit, read and written in fp32 by softmax, loss and their gradient


def products_s(job: Job) -> float:
    """Matrix products: 6 FLOPs per parameter and token. Products of experts reach a smaller share of the peak."""
    shape = job.shape
    experts = min(shape.routed_matmul, shape.layer_matmul)
    work = shape.layer_matmul - experts + experts / training_constants().expert_share
    return 2 * TRAINING * work * job.tokens / job.layout.tp / job.product_flops


def attention_s(job: Job) -> float:
    """The core of attention."""
    return TRAINING * _attention_forward_s(job)


def memory_bound_s(job: Job) -> float:
    """Memory-bound work: norms, sums, activations, weights and their gradients."""
    moved = TRAINING * _moved_forward(job) + weight_bytes(
        job.shape, job.layout, size=job.number_bytes, narrow=job.narrow
    )
    return moved / memory_rate(job)


def recompute_s(job: Job) -> float:
    """Recomputation."""
    forward = products_s(job) / TRAINING
    moved = _moved_forward(job) / memory_rate(job)
    match job.layout.recompute:
        case Recompute.NONE:
            return 0.0
        case Recompute.SELECTIVE:  # flash attention always recomputes: its measured share of the peak includes that
            return 0.0 if job.fused_attention else _attention_forward_s(job)
        case Recompute.OPERATORS:
            return (forward + moved) / 2
        case Recompute.FULL:
            return forward + _attention_forward_s(job) + moved


def head_s(job: Job) -> float:
    """The output layer and the loss of one micro-batch, on the last stage; always in 16 bits."""
    return head_flops(job) / job.wide_flops + head_bytes(job) / memory_rate(job)


def head_flops(job: Job) -> float:
    """FLOPs of the output layer and the loss."""
    return 2 * TRAINING * job.shape.embedding * job.tokens / job.layout.tp


def head_bytes(job: Job) -> float:
    """Bytes of memory traffic of the logits."""
    return _LOGIT_TRAFFIC * job.shape.vocabulary * job.tokens / job.layout.tp


def optimizer_s(job: Job) -> float:
    """The optimizer's pass over the parameters of a rank, once per step.

    With offload, gradients go to the host and weights come back, and the host's memory is the limit (ZeRO-Offload,
    arXiv:2101.06840, hides neither in a step that otherwise runs on the accelerator).
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
    """Bytes per second of memory-bound kernels."""
    return job.machine.accelerator.hbm_gb_per_s * 1e9 * training_constants().hbm_share


def _moved_forward(job: Job) -> float:
    return activation_bytes_per_token(job.shape, job.layout, size=job.number_bytes, narrow=job.narrow) * job.tokens


def _attention_forward_s(job: Job) -> float:
    """Flash attention computes the unmasked half; without it, all scores are computed, written and read."""
    tp = job.layout.tp
    flops = attention_flops(job.shape, job.seq_len, causal=job.fused_attention) * job.tokens / tp
    if job.fused_attention:
        return flops / job.attention_flops * _unevenness(job)
    moved = score_bytes_per_token(job.shape, job.layout, job.seq_len) * job.tokens
    return flops / job.wide_flops + moved / memory_rate(job)


def _unevenness(job: Job) -> float:
    """The slowdown of the rank with the most causal work; Megatron balances with an early and a late part per rank.

    Without balancing it is 2 - 1/c; torchtitan's runs are between that and 1.
    """
    balanced = job.layout.sharding in (Sharding.ZERO1, Sharding.ZERO2)
    return 1.0 if balanced else 1 + training_constants().uneven * (1 - 1 / job.layout.cp)
