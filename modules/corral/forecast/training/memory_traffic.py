"""Memory traffic of one layer on an accelerator, per token and per micro-batch."""

from __future__ import annotations

from corral.catalog.accelerators.training_constants import training_constants
from corral.catalog.accelerators.transformer import TransformerModel
from corral.forecast.training.layout import Layout

SUM_NUMBERS = 3  # per element, a vector sum reads two numbers and writes one
_GRADIENT = 8  # an fp32 gradient is read and written
_CAST = 4  # a 16-bit input is read, and written twice in 8 bits: as it is and transposed


def activation_bytes_per_token(shape: TransformerModel, layout: Layout, *, size: int = 2, narrow: bool) -> float:
    """Forward traffic of one token in one layer of one tensor-parallel rank; the backward pass moves twice as much.

    Each matrix product reads its inputs and writes its output; norms, residual sums and the MLP's activation read and
    write theirs. `size`: bytes per number. `narrow`: the inputs of products are first cast to 8 bits.
    """
    h = shape.hidden
    values, mlp = shape.value_width, shape.mlp_width_in_use
    wide = (2 * 2 + 2 * SUM_NUMBERS) * h * size  # two norms, two residual sums
    products, core = product_numbers(shape), attention_numbers(shape)
    activation = mlp * (3 if shape.gated else 2)
    routing = 6 * h * shape.mlps_in_use if shape.is_moe else 0
    cast = _CAST * (2 * h + values + mlp) if narrow else 0
    split = (products * training_constants().products_traffic_seen + core + activation + routing) * size + cast
    return wide / (layout.tp if layout.sequence_parallel else 1) + split / layout.tp


def product_numbers(shape: TransformerModel) -> float:
    """Numbers that the forward matrix products of a layer read and write per token, without weights."""
    h, queries, keys, values = shape.hidden, shape.query_width, shape.key_value_width, shape.value_width
    products: float = (h + 2 * shape.latent_width + queries + keys) + (values + h) + shape.mlps_in_use * 2 * h
    return products + shape.mlp_width_in_use * (3 if shape.gated else 2)


def attention_numbers(shape: TransformerModel) -> int:
    """Numbers that forward fused attention reads and writes per token: queries, keys, values, output."""
    return shape.query_width + shape.key_value_width + shape.value_width


def score_bytes_per_token(shape: TransformerModel, layout: Layout, seq_len: float) -> float:
    """Forward traffic of one token's attention scores in one layer, without fused (flash) attention.

    Scores are written, scaled and masked, put through softmax and dropout (with its mask), and read: 13 bytes each.
    """
    return training_constants().score_bytes * shape.heads * seq_len / layout.tp


def weight_bytes(shape: TransformerModel, layout: Layout, *, size: int = 2, narrow: bool) -> float:
    """Traffic of one layer's weights per micro-batch: three reads, and accumulation of gradients in fp32."""
    shared = shape.shared_layer_parameters / layout.tp
    experts = shape.expert_parameters / layout.expert_ranks
    return (shared + experts) * (3 * (1 if narrow else size) + _GRADIENT) * training_constants().products_traffic_seen
