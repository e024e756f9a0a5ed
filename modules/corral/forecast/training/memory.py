"""The memory of one accelerator in training by parts, on the pipeline stage that needs the most."""

from __future__ import annotations

from dataclasses import dataclass

from corral.catalog.accelerators.transformer import TransformerModel
from corral.forecast.training.layout import Layout, Recompute
from corral.forecast.training.optimizer_state import StateBytes

GIB = 2**30
_FP32 = 4  # bytes
_LOGITS = 3  # copies at the peak; with two, the result for torchtitan's eager 8B on 128 is 23 % too low
_PLAIN, _GATED = 4, 6  # bytes that an MLP stores per unit of its inner width
_LIVE_LAYERS = 2  # the current layer and the one gathered ahead (ZeRO, arXiv:1910.02054: one or two)
# Both UNVERIFIED: no source has them. On one H100, without NCCL, the context took 0.7 GiB, and the allocator held 2 to
# 12 % more than was in use (docs/forecast.md, "Measured runs").
RESERVE_GIB = 6.0  # device context, NCCL buffers
FRAGMENTED = 0.05  # of the memory in use: fragmentation of the allocator


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes on the accelerator that needs the most. `gathered`: layers gathered for their computation (ZeRO-3).

    `host`: bytes in host memory for this accelerator; not included in the sums.
    """

    weights: float
    gradients: float
    optimizer: float
    gathered: float
    activations: float
    logits: float
    reserve: float
    host: float = 0.0

    @property
    def static(self) -> float:
        """Bytes in use between steps."""
        return self.weights + self.gradients + self.optimizer

    @property
    def total(self) -> float:
        """Bytes in use at the peak, with the reserve."""
        return self.static + self.gathered + self.activations + self.logits + self.reserve

    @property
    def total_gib(self) -> float:
        """The total in GiB."""
        return self.total / GIB


def memory_of(
    shape: TransformerModel,
    layout: Layout,
    seq_len: int,
    *,
    state: StateBytes,
    micro_batches: int,
    offload_optimizer: bool = False,
) -> Memory:
    """The memory on the first or the last pipeline stage, whichever needs more."""
    stages = {0, layout.pp - 1}
    needs = [_stage(shape, layout, seq_len, state, micro_batches, stage, offload_optimizer) for stage in stages]
    return max(needs, key=lambda memory: memory.total)


def static_bytes(parameters: float, state: StateBytes, layout: Layout, ranks: float) -> tuple[float, float, float]:
    """Bytes of weights, gradients and optimizer for the parameters of a model-parallel rank.

    Stage 1: 4P + KP/N; 2: 2P + (2 + K)P/N; 3: (4 + K)P/N with K = 12 (ZeRO, arXiv:1910.02054, Figure 1).
    """
    sharding = layout.sharding
    return (
        parameters * state.weights / (ranks if sharding.of_parameters else 1),
        parameters * state.gradients / (ranks if sharding.of_gradients else 1),
        parameters * state.optimizer / (ranks if sharding.of_optimizer else 1),
    )


def stage_parameters(shape: TransformerModel, layout: Layout, stage: int) -> tuple[float, float]:
    """Parameters of a tensor-parallel rank of a stage: the shared ones, and those of routed experts.

    Layers are divided by t p; the embedding is on the first stage, the output layer on the last one.
    """
    layers = shape.layers / layout.pp
    tables = (stage == 0) + (stage == layout.pp - 1 and not (shape.tied and layout.pp == 1))
    whole = layers * shape.shared_layer_parameters + tables * shape.embedding
    return whole / layout.tp, layers * shape.expert_parameters / layout.expert_ranks


def layer_activation_bytes(
    shape: TransformerModel, layout: Layout, seq_len: float, recompute: Recompute, *, quadratic: bool = True
) -> float:
    """Bytes stored for the backward pass of one layer and micro-batch, in 16-bit numbers.

    Korthikanti et al. (arXiv:2205.05198), Table 2: sbh (10 + 24/t + 5as/(ht)); with sequence parallelism sbh/t (34 +
    5as/h); selective: without the 5as term; full: 2 sbh. Here 34 h is 18 h + 4 f, for gated MLPs without dropout
    16 h + 6 f (a fused SwiGLU stores its input, 4 f, and its output); queries, keys and values are 8 h of it if the
    heads' total width is h and no keys are grouped. `quadratic`: attention stores its s x s scores (not flash
    attention).
    """
    tokens = seq_len / layout.cp * layout.micro_batch
    h, tp = shape.hidden, layout.tp
    if recompute is Recompute.FULL:
        return tokens * 2 * h / (tp if layout.sequence_parallel else 1)
    wide, narrow = (_GATED, 8) if shape.gated else (_PLAIN, 10)  # GPT's dropout keeps two masks of a byte
    mlp = shape.mlp_width_in_use * wide
    if recompute is Recompute.OPERATORS:  # the input, the output of attention, and half of the products' outputs
        products = shape.mlp_width_in_use * (2 if shape.gated else 1)
        kept = 2 * h + 2 * shape.value_width + h + shape.key_value_width - shape.value_width + products
        return tokens * kept / tp
    split = 2 * (shape.query_width + shape.key_value_width + shape.value_width + shape.latent_width) + mlp
    whole = narrow * h / (tp if layout.sequence_parallel else 1)
    scores = 5 * shape.heads * seq_len / tp if quadratic and recompute is Recompute.NONE else 0.0
    return tokens * (whole + split / tp + scores)


def layers_in_flight(shape: TransformerModel, layout: Layout, micro_batches: int) -> float:
    """Layers whose activations the first stage stores: L, times 1 + (p-1)/(p v) if interleaved (Korthikanti et al.).

    A stage never holds more micro-batches than there are.
    """
    p, v = layout.pp, layout.virtual_stages
    ahead = 1 + (p - 1) / (p * v) if v > 1 else 1.0
    return shape.layers * ahead * min(1.0, micro_batches / p)


def logits_bytes(shape: TransformerModel, layout: Layout, seq_len: float) -> float:
    """fp32 logits of a micro-batch, their log-probabilities and their gradient, on the last stage: 3 x 4 s b V / t."""
    tokens = seq_len / layout.cp * layout.micro_batch
    return _LOGITS * _FP32 * tokens * shape.vocabulary / layout.tp


def _stage(
    shape: TransformerModel,
    layout: Layout,
    seq_len: int,
    state: StateBytes,
    micro_batches: int,
    stage: int,
    offload_optimizer: bool,
) -> Memory:
    shared, experts = stage_parameters(shape, layout, stage)
    data = layout.dp * layout.cp
    parts = [
        sum(pair)
        for pair in zip(
            static_bytes(shared, state, layout, data),
            static_bytes(experts, state, layout, layout.expert_copies),
            strict=True,
        )
    ]
    parts, host = ([*parts[:2], 0.0], parts[2]) if offload_optimizer else (parts, 0.0)
    wide = state.numbers / 2  # the formulas are for 16-bit numbers
    held = layers_in_flight(shape, layout, micro_batches) if stage == 0 else shape.layers / layout.pp
    kept = wide * layer_activation_bytes(shape, layout, seq_len, layout.recompute, quadratic=False)
    working = (
        wide * layer_activation_bytes(shape, layout, seq_len, Recompute.NONE, quadratic=False)
        if layout.recompute in (Recompute.FULL, Recompute.OPERATORS)
        else 0.0
    )
    gathered = _gathered(shape, layout, state.numbers)
    logits = logits_bytes(shape, layout, seq_len) if stage == layout.pp - 1 else 0.0
    used = sum(parts) + gathered + held * kept + working + logits
    return Memory(
        weights=parts[0],
        gradients=parts[1],
        optimizer=parts[2],
        gathered=gathered,
        activations=held * kept + working,
        logits=logits,
        reserve=RESERVE_GIB * GIB + FRAGMENTED * used,
        host=host,
    )


def _gathered(shape: TransformerModel, layout: Layout, numbers: float) -> float:
    """Bytes gathered by ZeRO-3: weights of two layers and gradients of one.

    In a pipeline all layers of the stage stay gathered until the step ends, with fp32 gradients.
    """
    if not layout.sharding.of_parameters:
        return 0.0
    layer = shape.shared_layer_parameters / layout.tp + shape.expert_parameters / layout.expert_ranks
    if layout.pp > 1:
        return shape.layers / layout.pp * layer * (numbers + _FP32)
    return (_LIVE_LAYERS + 1) * layer * numbers
